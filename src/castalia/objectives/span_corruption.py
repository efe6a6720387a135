"""Span corruption: stretches of a text are cut out, and the answer puts them back.

``Thank you for inviting me to your party last week`` becomes the source ``Thank you <X> me to your
party <Y> week`` and the answer ``<X> for inviting <Y> last <Z>``; each stretch has a sentinel.
Shapes: B batch, T tokens, K stretches.
Reference: 2020, Raffel et al., Exploring the limits of transfer learning with a unified
text-to-text transformer, arXiv 1910.10683, 3.1.4 and 3.3.4.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.errors import InvalidParameter
from castalia.objectives.objective import Objective, weighted_mean
from castalia.objectives.sequence_cross_entropy import SequenceCrossEntropy
from castalia.objectives.tokens import chance, compact, ranks
from castalia.protocols import Batch

__all__ = ["SpanCorruption", "cut_spans", "noise_places", "restore_spans"]


class SpanCorruption(Objective):
    """Put back what was cut out; the network is ``net(ids, decoder_ids, keep=…)``.

    Parameters
    ----------
    sentinels
        Ids of the sentinels, in order.
    pad, start, end
        Ids of padding, of what an answer begins with, and of the end of a row and of an answer.
    rate
        Share of a row's tokens that are cut out.
    mean_span
        Mean length of a stretch; 1 chooses tokens independently, and neighbours become one stretch.
    """

    def __init__(
        self,
        sentinels: Sequence[int],
        *,
        pad: int,
        start: int,
        end: int,
        rate: float = 0.15,
        mean_span: float = 3.0,
    ) -> None:
        if not 0 < rate < 1 or mean_span < 1:
            raise InvalidParameter(
                "SpanCorruption: `rate` must be between 0 and 1 and `mean_span` at least 1; got "
                f"{rate!r} and {mean_span!r}."
            )
        self.sentinels, self.pad, self.end = tuple(sentinels), pad, end
        self.rate, self.mean_span = rate, mean_span
        self.loss = SequenceCrossEntropy(pad=pad, start=start)

    def corrupt(self, ids: Tensor, source: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        """Return sources, (B, T), and answers, padded to the longest that can be."""
        eligible = (ids != self.pad) & (ids != self.end)
        noise = noise_places(eligible, self.rate, self.mean_span, source)
        return cut_spans(
            ids, noise, self.sentinels, pad=self.pad, end=self.end, width=self.width(ids.shape[1])
        )

    def width(self, length: int) -> int:
        """Return the most tokens of an answer to a row of ``length``."""
        cut = max(1, round(length * self.rate))
        spans = cut if self.mean_span == 1 else max(1, round(cut / self.mean_span))
        if spans + 1 > len(self.sentinels):
            raise InvalidParameter(
                f"SpanCorruption: rows of {length} tokens must find {spans + 1} sentinels; got "
                f"{len(self.sentinels)}. Give the tokenizer more of them, or cut rows shorter."
            )
        return cut + spans + 2

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the mean over rows of the mean over their answers' tokens."""
        sources, answers = self.corrupt(batch.x, chance(net, batch.x.device))
        return {"loss": weighted_mean(self.loss.rows(net, sources, answers), batch.weight)}


def noise_places(
    eligible: Tensor, rate: float, mean_span: float, source: torch.Generator | None = None
) -> Tensor:
    """Return which tokens are cut out, (B, T).

    Of n eligible tokens, which stand at the beginning of a row or after it in one piece, round(rate
    n) are cut out, in round(. / mean_span) stretches of random lengths, never two side by side.
    """
    total = eligible.sum(dim=1, keepdim=True)  # (B, 1)
    cut = (total * rate).round().long().clamp_min(1).minimum((total - 1).clamp_min(0))
    if mean_span == 1:
        return (ranks(eligible, source) < cut) & eligible
    spans = (cut / mean_span).round().long().clamp_min(1).minimum(total - cut).minimum(cut)
    kept_sizes = _segments(total - cut, spans, eligible.shape[1], source)
    cut_sizes = _segments(cut, spans, eligible.shape[1], source)
    ends = torch.stack([kept_sizes, cut_sizes], dim=2).flatten(1).cumsum(dim=1)  # (B, 2 T)
    place = eligible.long().cumsum(dim=1) - 1  # among the eligible
    segment = torch.searchsorted(ends, place.contiguous(), right=True)
    return eligible & (segment % 2 == 1)


def _segments(count: Tensor, pieces: Tensor, width: int, source: torch.Generator | None) -> Tensor:
    """Cut ``count`` things into that many pieces, none empty: their sizes, (B, width), then zeros.

    All ways to cut are equally probable: pieces - 1 of the count - 1 gaps are chosen.
    """
    place = torch.arange(width, device=count.device)
    gaps = (place >= 1) & (place < count)  # a gap stands before each thing but the first
    begins = (ranks(gaps, source) < pieces - 1) & gaps
    piece = begins.long().cumsum(dim=1)
    return torch.zeros_like(piece).scatter_add_(1, piece, (place < count).long())


def cut_spans(
    ids: Tensor,
    noise: Tensor,
    sentinels: Sequence[int],
    *,
    pad: int,
    end: int | None = None,
    width: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Return sources and answers for given places of the cuts.

    Parameters
    ----------
    ids
        Tokens, (B, T).
    noise
        Which are cut out, (B, T).
    sentinels
        Ids of the sentinels, in order; one more than there are stretches in a row.
    pad
        Id of padding.
    end
        Id that ends an answer; None: nothing after the last sentinel.
    width
        Tokens of an answer; None: 2 T + 2, which always suffices.

    Examples
    --------
    >>> ids = torch.tensor([[11, 12, 13, 14, 15]])
    >>> noise = torch.tensor([[False, True, True, False, False]])
    >>> source, answer = cut_spans(ids, noise, [91, 92], pad=0)
    >>> source, answer[:, :5]
    (tensor([[11, 91, 14, 15,  0]]), tensor([[91, 12, 13, 92,  0]]))
    """
    begins = noise & ~F.pad(noise[:, :-1], (1, 0))
    number = begins.long().cumsum(dim=1)  # stretches so far
    names = torch.as_tensor(sentinels, device=ids.device)
    sentinel = names[(number - 1).clamp_min(0)]
    source = compact(torch.where(begins, sentinel, ids), (~noise | begins) & (ids != pad), pad)
    both = torch.stack([sentinel, ids], dim=2).flatten(1)  # a sentinel before each token
    wanted = torch.stack([begins, noise], dim=2).flatten(1)
    last = [names[number[:, -1:]]]
    if end is not None:
        last.append(torch.full_like(last[0], end))
    tail = torch.cat(last, dim=1)
    answer = torch.cat([both, tail], dim=1)
    wanted = torch.cat([wanted, torch.ones_like(tail, dtype=torch.bool)], dim=1)
    return source, compact(answer, wanted, pad, width or answer.shape[1])


def restore_spans(
    source: Sequence[int], answer: Sequence[int], sentinels: Sequence[int]
) -> list[int]:
    """Return the row that a source and its answer came from.

    Examples
    --------
    >>> restore_spans([11, 91, 14, 15], [91, 12, 13, 92], [91, 92])
    [11, 12, 13, 14, 15]
    """
    known, current = set(sentinels), None
    spans: dict[int, list[int]] = {}
    for token in answer:
        if token in known:
            current = spans.setdefault(token, [])
        elif current is not None:
            current.append(token)
    return [t for token in source for t in (spans.get(token, []) if token in known else [token])]
