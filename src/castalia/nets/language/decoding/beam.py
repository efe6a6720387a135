"""Beam search: the most probable text among those whose beginnings stay among the best.

The score of a text y of length n is log p(y) / n^a; with a = 0 it is the log-probability. A text
ends with a stop token or at the longest length.
Shapes: B batch, K beams, V vocabulary, N new tokens.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.errors import InvalidData, InvalidParameter
from castalia.nets.language.decoding.prompt_tensors import Reader, as_prompt
from castalia.nn.network_modes import evaluating

__all__ = ["Beams", "beam_search"]


class Beams(NamedTuple):
    """Texts of each row, best first: tokens (B, K, N), padded after the end, and scores (B, K)."""

    ids: Tensor
    scores: Tensor


@torch.no_grad()
def beam_search(
    net: nn.Module,
    ids: Any,
    *,
    tokens: int = 20,
    beams: int = 4,
    length_penalty: float = 0.0,
    stop: int | Collection[int] = (),
    start: int | None = None,
    pad: int = 0,
    keep: Tensor | None = None,
) -> Beams:
    """Return the best texts found after each prompt.

    Parameters
    ----------
    net, ids, stop, start, pad, keep
        As for ``generate``.
    tokens
        The longest text.
    beams
        Texts kept at each length; with one, the search is greedy.
    length_penalty
        The exponent a from 0; larger values favour longer texts.

    Examples
    --------
    >>> from castalia.nets.language import GPT
    >>> net = GPT(50, context=16, dim=8, depth=1, heads=2)
    >>> beam_search(net, [[3, 1]], tokens=4, beams=3).ids.shape
    torch.Size([1, 3, 4])
    """
    if beams < 1 or tokens < 1:
        raise InvalidParameter(
            "beam_search: `beams` and `tokens` must be whole numbers from 1; got "
            f"{beams} and {tokens}."
        )
    if length_penalty < 0:
        raise InvalidParameter(
            f"beam_search: `length_penalty` must be from 0; got {length_penalty}."
        )
    device = next(net.parameters()).device
    stops = (stop,) if isinstance(stop, int) else tuple(stop)
    with evaluating(net):
        read = Reader(net, as_prompt(ids, keep, device), start)
        rows = len(read.first.ids)
        read.repeat(beams)
        search = _Search(rows, beams, tokens, length_penalty, stops, pad, device)
        cache = read.cache(tokens)
        given = read.first.ids
        for length in range(1, tokens + 1):
            logits = read(given, None, cache)
            source = search.extend(_log_probabilities(logits), length)
            if length == tokens or search.settled(length):
                break
            cache.reorder(source)
            given = search.last
        return search.result(length)


def _log_probabilities(logits: Tensor) -> Tensor:
    if not bool(logits.amax(dim=-1).isfinite().all()):
        raise InvalidData(
            "beam_search: the scores of the next token must be finite numbers; got NaN or infinity."
        )
    return logits.log_softmax(dim=-1)


class _Search:
    """Living texts, (B, K), and the best ended ones."""

    def __init__(
        self,
        rows: int,
        beams: int,
        tokens: int,
        penalty: float,
        stop: tuple[int, ...],
        pad: int,
        device: torch.device,
    ) -> None:
        self.rows, self.beams, self.tokens, self.penalty = rows, beams, tokens, penalty
        self.stop = torch.tensor(stop, dtype=torch.long, device=device)
        shape = (rows, beams, tokens)
        self.alive = torch.full(shape, pad, dtype=torch.long, device=device)
        self.ended = torch.full(shape, pad, dtype=torch.long, device=device)
        worst = torch.full((rows, beams), -torch.inf, device=device)
        self.ended_scores = worst.clone()
        self.logs = worst.clone()
        self.logs[:, 0] = 0  # all beams begin alike: one of them counts
        self.newest = self.alive[..., 0]
        self.offset = torch.arange(rows, device=device)[:, None] * beams

    @property
    def last(self) -> Tensor:
        """The newest token of each living text, (B K, 1)."""
        return self.newest.view(-1, 1)

    def extend(self, log_p: Tensor, length: int) -> Tensor:  # (B K, V)
        """Continue every text by every token; return the row each living one comes from, (B K,)."""
        vocabulary = log_p.shape[-1]
        total = self.logs[..., None] + log_p.view(self.rows, self.beams, -1).to(self.logs.dtype)
        if len(self.stop):
            self._end(total[..., self.stop], length)  # (B, K, stops)
            total[..., self.stop] = -torch.inf
        flat = total.flatten(1)
        self.logs, best = _best(flat, self.beams)
        parents, self.newest = best // vocabulary, best % vocabulary  # (B, K)
        self.alive = self.alive.gather(1, parents[..., None].expand_as(self.alive)).clone()
        self.alive[..., length - 1] = self.newest
        return (self.offset + parents).flatten()

    def _end(self, logs: Tensor, length: int) -> None:
        """Let texts that end here compete with those that ended before."""
        scores = (logs / length**self.penalty).flatten(1)  # (B, K * stops)
        new = self.alive[:, :, None].repeat(1, 1, len(self.stop), 1)
        new[..., length - 1] = self.stop
        pool = torch.cat([self.ended, new.flatten(1, 2)], dim=1)
        self.ended_scores, best = _best(torch.cat([self.ended_scores, scores], dim=1), self.beams)
        self.ended = pool.gather(1, best[..., None].expand_as(self.ended))

    def settled(self, length: int) -> bool:
        """Say whether no living text can still beat an ended one: log p only falls."""
        if not len(self.stop):
            return False
        hope = self.logs[:, 0] / self.tokens**self.penalty
        return bool((self.ended_scores[:, -1] >= hope).all())

    def result(self, length: int) -> Beams:
        """Return ended texts and those cut at the longest length, best first."""
        scores = torch.cat([self.ended_scores, self.logs / length**self.penalty], dim=1)
        texts = torch.cat([self.ended, self.alive], dim=1)
        scores, best = _best(scores, self.beams)
        return Beams(texts.gather(1, best[..., None].expand_as(self.alive)), scores)


def _best(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the largest ``count`` scores of each row; a short row is filled with -inf."""
    values, index = scores.topk(min(count, scores.shape[1]), dim=1)
    if values.shape[1] < count:
        lack = count - values.shape[1]
        values = F.pad(values, (0, lack), value=-torch.inf)
        index = F.pad(index, (0, lack))
    return values, index
