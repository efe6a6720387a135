"""Pseudo-likelihood: every unit predicted from all others, no partition function.

-sum_i ln P(x_i | rest) for a network that gives the log-odds of each unit given the others.
Reference: 1975, Besag, Statistical analysis of non-lattice data, The Statistician 24.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from castalia.objectives.objective import Objective, weighted_mean
from castalia.protocols import Batch

__all__ = ["PseudoLikelihood"]


class PseudoLikelihood(Objective):
    """Minus the log pseudo-likelihood of binary rows, for a network from rows to log-odds."""

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the mean over rows of the sum over units."""
        rows = F.binary_cross_entropy_with_logits(net(batch.x), batch.x, reduction="none")
        return {"loss": weighted_mean(rows.sum(dim=1), batch.weight)}
