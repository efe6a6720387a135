"""Pairs that belong together, found among all others of the batch.

l_i = - log softmax_j(a_i' b_j / t)_i, or, both ways, its mean with - log softmax_j(b_i' a_j / t)_i.

The second texts of the other pairs are the wrong answers, so larger batches are harder and teach
more; one that equals the right answer is left out.  Shapes: B pairs, E width.
References: 2017, Henderson et al., Efficient natural language response suggestion for smart reply,
arXiv 1705.00652; 2018, Oord, Li, Vinyals, Representation learning with contrastive predictive
coding, arXiv 1807.03748 (InfoNCE).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.objectives.objective import Objective, weighted_mean
from castalia.protocols import Batch

__all__ = ["InBatchContrast"]


class InBatchContrast(Objective):
    """Multiple-negatives ranking: each first member must find its second among those of the batch.

    Parameters
    ----------
    temperature
        Divides the products of unit vectors, t; smaller values look at the nearest mistakes only.
    both_ways
        Whether second members must find their first, too.

    Examples
    --------
    >>> pairs = torch.eye(2)[:, None].repeat(1, 2, 1)  # two pairs of equal vectors, at right angles
    >>> loss = InBatchContrast(1.0).terms(nn.Identity(), Batch(pairs), "train")["loss"]
    >>> loss.exp()  # 1 + exp(-1)
    tensor(1.3679)
    """

    def __init__(self, temperature: float = 0.05, *, both_ways: bool = True) -> None:
        if not temperature > 0:
            raise InvalidParameter(
                f"InBatchContrast: `temperature` must be above 0; got {temperature!r}."
            )
        self.temperature, self.both_ways = temperature, both_ways

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the mean over pairs; targets are not used."""
        x = batch.x
        if x.ndim < 3 or x.shape[1] != 2:
            raise ShapeMismatch(
                f"InBatchContrast: inputs must be (B, 2, …), the members of a pair side by side; "
                f"got {tuple(x.shape)}."
            )
        vectors = net(x.transpose(0, 1).flatten(0, 1))  # (2 B, E), first members first
        a, b = vectors.chunk(2)
        scores = a @ b.T / self.temperature  # (B, B)
        losses = self._losses(scores, x[:, 1])
        if self.both_ways:
            losses = (losses + self._losses(scores.T, x[:, 0])) / 2
        return {"loss": weighted_mean(losses, batch.weight)}

    def _losses(self, scores: Tensor, answers: Tensor) -> Tensor:
        """Return - log p of the right answer of each row, (B,)."""
        flat = answers.flatten(1)
        same = (flat[:, None] == flat[None]).all(dim=2)  # (B, B)
        own = torch.eye(len(scores), dtype=torch.bool, device=scores.device)
        scores = scores.masked_fill(same & ~own, -torch.inf)
        places = torch.arange(len(scores), device=scores.device)
        return F.cross_entropy(scores, places, reduction="none")
