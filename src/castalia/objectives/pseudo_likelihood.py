"""Pseudo-likelihood: every unit predicted from all others, no partition function.

-sum_i ln P(x_i | rest).
Reference: 1975, Besag, Statistical analysis of non-lattice data, The Statistician 24.
"""

from __future__ import annotations

from typing import Any, cast

from torch import Tensor, nn

from castalia.objectives.objective import Objective, weighted_mean
from castalia.protocols import Batch

__all__ = ["PseudoLikelihood"]


class PseudoLikelihood(Objective):
    """Minus the log pseudo-likelihood of rows, for a network that has ``log_pseudo``."""

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the mean over rows of the sum over units."""
        found: Tensor = cast(Any, net).log_pseudo(batch.x)
        return {"loss": -weighted_mean(found, batch.weight)}
