"""Next sentence: whether the second of two texts follows the first or was taken from elsewhere.

A row holds two texts that follow each other. For half of the rows the second is exchanged for that
of another row of the batch; the rows are then joined as ``begin a end b end``, hidden tokens are
guessed, and the pair is judged from the first place.
Shapes: B batch, T tokens of one text.
Reference: 2019, Devlin, Chang, Lee, Toutanova, BERT, arXiv 1810.04805.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.objectives.masked import MaskedLM
from castalia.objectives.objective import Objective, weighted_mean
from castalia.objectives.tokens import chance, compact
from castalia.protocols import Batch

__all__ = ["NextSentence", "Pairs", "join_pairs"]


class Pairs(NamedTuple):
    """Joined pairs: tokens and segments, (B, 2 T + 3), and 0 where the second follows, (B,)."""

    ids: Tensor
    segments: Tensor
    labels: Tensor


def join_pairs(
    first: Tensor, second: Tensor, *, begin: int, end: int, pad: int
) -> tuple[Tensor, Tensor]:
    """Return ``begin a end b end`` of padded rows, and which text each token belongs to.

    >>> ids, segments = join_pairs(
    ...     torch.tensor([[7, 0]]), torch.tensor([[8, 9]]), begin=1, end=2, pad=0)
    >>> ids.tolist(), segments.tolist()
    ([[1, 7, 2, 8, 9, 2, 0]], [[0, 0, 0, 1, 1, 1, 0]])
    """
    column = first.new_ones(len(first), 1)
    a = torch.cat([begin * column, first, end * column], dim=1)
    b = torch.cat([second, end * column], dim=1)
    both = torch.cat([a, b], dim=1)
    ids = compact(both, both != pad, pad)
    length = (a != pad).sum(dim=1, keepdim=True)
    place = torch.arange(ids.shape[1], device=ids.device)
    return ids, ((place >= length) & (ids != pad)).long()


class NextSentence(Objective):
    """Masked tokens and pairs together; the network also gives ``judge``.

    Parameters
    ----------
    masked
        How tokens are hidden.
    begin, end
        Ids that stand before, and after each text.
    exchanged
        Share of pairs whose second text comes from another row.

    Notes
    -----
    A row is (2, T): the two texts without begin and end, each padded.
    """

    def __init__(self, masked: MaskedLM, *, begin: int, end: int, exchanged: float = 0.5) -> None:
        self.masked, self.begin, self.end, self.exchanged = masked, begin, end, exchanged

    def pairs(self, x: Tensor, source: torch.Generator | None = None) -> Pairs:  # (B, 2, T)
        """Exchange and join the texts of rows (B, 2, T)."""
        rows, device = len(x), x.device
        own = torch.arange(rows, device=device)
        away = torch.randint(1, max(rows, 2), (rows,), device=device, generator=source)
        wanted = torch.rand(rows, device=device, generator=source) < self.exchanged
        other = torch.where(wanted, (own + away) % rows, own)
        first, second = x[:, 0], x[:, 1].index_select(0, other)
        ids, segments = join_pairs(
            first, second, begin=self.begin, end=self.end, pad=self.masked.pad
        )
        return Pairs(ids, segments, (other != own).long())

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the sum of both losses, and each of them."""
        source = chance(net, batch.x.device)
        pairs = self.pairs(batch.x, source)
        found = self.masked.damage(pairs.ids, source)
        keep = pairs.ids != self.masked.pad
        h = net.features(found.ids, pairs.segments, keep=keep)  # type: ignore[operator]
        judged = net.judge(h)  # type: ignore[operator]
        follows = F.cross_entropy(judged, pairs.labels, reduction="none")
        parts = {
            "masked": weighted_mean(self.masked.rows(net, h, found), batch.weight),
            "next_sentence": weighted_mean(follows, batch.weight),
        }
        return {"loss": parts["masked"] + parts["next_sentence"], **parts}
