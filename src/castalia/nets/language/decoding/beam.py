"""Beam search: the most probable text among those whose beginnings stay among the best.

The score of a text y of length n is log p(y) / n^a; with a = 0 it is the log-probability. A text
ends with a stop token or at the longest length; one that ends counts if it is among the K best
continuations of its step. A row is over when its best living text, scored at its present length,
does not beat the worst of K ended ones: the rules of transformers, and its tokens.
Shapes: B batch, K beams, C candidates, V vocabulary, N new tokens.
"""

from __future__ import annotations

import sys
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
    cached: bool = True,
) -> Beams:
    """Return the best texts found after each prompt.

    Parameters
    ----------
    net, ids, stop, start, pad, keep, cached
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
        cache = read.cache(tokens) if cached else None
        room = getattr(net, "context", None) or sys.maxsize  # without a cache, old ones fall out
        given, real = read.first.ids, read.first.keep
        if cache is None:
            given, real = given[:, -room:], None if real is None else real[:, -room:]
        for length in range(1, tokens + 1):
            logits = read(given, real, cache)
            source = search.extend(_log_probabilities(logits), length)
            if length == tokens or search.settled(length):
                break
            if cache is not None:
                cache.reorder(source)
                given = search.last
            else:
                given = torch.cat([read.first.ids, search.written(length)], dim=1)[:, -room:]
                real = None if real is None else F.pad(real, (0, 1), value=True)[:, -room:]
        return search.result()


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
        self.candidates = max(2, 1 + len(stop)) * beams  # K of them do not end
        self.open = torch.ones(rows, dtype=torch.bool, device=device)
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

    def written(self, length: int) -> Tensor:
        """The tokens of each living text, (B K, length)."""
        return self.alive[..., :length].flatten(0, 1)

    def extend(self, log_p: Tensor, length: int) -> Tensor:  # (B K, V)
        """Continue every text by every token; return the row each living one comes from, (B K,)."""
        vocabulary = log_p.shape[-1]
        total = self.logs[..., None] + log_p.view(self.rows, self.beams, -1).to(self.logs.dtype)
        logs, best = _best(total.flatten(1), self.candidates)  # (B, C)
        parents, tokens = best // vocabulary, best % vocabulary
        texts = _taken(self.alive, parents)
        texts[..., length - 1] = tokens
        ends = torch.isin(tokens, self.stop) | (length == self.tokens)
        self._end(logs.masked_fill(~ends, -torch.inf), texts, length)
        self.logs, rank = _best(logs.masked_fill(ends, -torch.inf), self.beams)
        self.alive, self.newest = _taken(texts, rank), tokens.gather(1, rank)
        return (self.offset + parents.gather(1, rank)).flatten()

    def _end(self, logs: Tensor, texts: Tensor, length: int) -> None:  # (B, C), (B, C, N)
        """Let texts that end here among the first K compete with those that ended before."""
        logs = logs[:, : self.beams].masked_fill(~self.open[:, None], -torch.inf)
        scores = torch.cat([self.ended_scores, logs / length**self.penalty], dim=1)
        self.ended_scores, best = _best(scores, self.beams)
        self.ended = _taken(torch.cat([self.ended, texts[:, : self.beams]], dim=1), best)

    def settled(self, length: int) -> bool:
        """Close rows whose living texts no longer beat the ended ones; say whether all are."""
        self.open &= self.ended_scores[:, -1] < self.logs[:, 0] / length**self.penalty
        return not bool(self.open.any())

    def result(self) -> Beams:
        """Return the ended texts, best first."""
        return Beams(self.ended, self.ended_scores)


def _taken(texts: Tensor, index: Tensor) -> Tensor:  # (B, C, N), (B, K)
    """Return a copy of some texts of each row, (B, K, N)."""
    return texts.gather(1, index[..., None].expand(-1, -1, texts.shape[-1]))


def _best(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the largest ``count`` scores of each row; a short row is filled with -inf."""
    values, index = scores.topk(min(count, scores.shape[1]), dim=1)
    if values.shape[1] < count:
        lack = count - values.shape[1]
        values = F.pad(values, (0, lack), value=-torch.inf)
        index = F.pad(index, (0, lack))
    return values, index
