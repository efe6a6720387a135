"""Cross-entropy at marked tokens: tags of words, and the first and last token of an answer.

Shapes: B batch, T tokens, W words, K classes.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.objectives.objective import Objective, weighted_mean
from castalia.objectives.tokens import row_means, token_losses
from castalia.protocols import Batch

__all__ = ["SpanCrossEntropy", "TagCrossEntropy", "span_places"]


class TagCrossEntropy(Objective):
    """-log p of each word's tag at its first piece; a mean over the words of each row.

    x is (B, 2, T): ids, and the number of the word at its first piece. y is (B, W): the tag of each
    word, -1 after the last. Words that were cut off do not count.
    """

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the weighted mean of the rows' losses."""
        number = batch.x[:, 1]
        tags = batch.y.gather(1, (number - 1).clamp(0, batch.y.shape[1] - 1))  # (B, T)
        counted = (number > 0) & (tags >= 0)
        losses = token_losses(net(batch.x), tags.clamp_min(0))
        return {"loss": weighted_mean(row_means(losses, counted), batch.weight)}


def span_places(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Return the first and the last token of each answer, (B,); 0 where there is none.

    Parameters
    ----------
    x
        Rows (B, 3, T): ids, and where a piece begins and ends among the characters, from 1.
    y
        Where the answer begins and ends, from 1, (B, 2); 0 and 0: there is none.
    """
    begin, end = y[:, :1], y[:, 1:]
    inside = (x[:, 2] > 0) & (x[:, 2] >= begin) & (x[:, 1] <= end) & (begin > 0)  # (B, T)
    place = torch.arange(x.shape[2], device=x.device)
    last = torch.where(inside, place, 0).amax(dim=1)
    first = torch.where(inside, place, x.shape[2]).amin(dim=1)
    return torch.where(inside.any(dim=1), first, 0), last


class SpanCrossEntropy(Objective):
    """Mean of -log p of the first and of the last token of the answer.

    x and y are those of ``span_places``; an answer that was cut off counts as none.
    """

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the weighted mean of the rows' losses."""
        scores = net(batch.x)  # (B, T, 2)
        first, last = span_places(batch.x, batch.y)
        losses = [
            F.cross_entropy(scores[..., k], place, reduction="none")
            for k, place in enumerate((first, last))
        ]
        return {"loss": weighted_mean((losses[0] + losses[1]) / 2, batch.weight)}
