"""Any energy of discrete states as a model that can learn: P(x) = exp(-E(x)) / Z.

Shapes: B rows of state numbers, n variables, K states of one.
Reference: 2006, LeCun et al., A tutorial on energy-based learning.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from castalia.nets.probabilistic.discrete_states import DiscreteStates

__all__ = ["EnergyNetwork"]


class EnergyNetwork(DiscreteStates):
    """Conditionals and Gibbs steps of an energy, found by trying every state of a variable.

    Parameters
    ----------
    energy
        From rows of state numbers, (B, n), to energies, (B,).
    sizes
        Number of states of each variable.
    """

    def __init__(self, energy: nn.Module, sizes: Sequence[int]) -> None:
        super().__init__()
        self.energy, self.sizes = energy, list(sizes)

    def forward(self, x: Tensor) -> Tensor:  # (B, n)
        """Return -E, (B,)."""
        found: Tensor = -self.energy(x.long())
        return found.to(x.dtype)

    def log_odds(self, x: Tensor, i: int) -> Tensor:
        """Return -E for every state of a variable, the others as they are, (B, K)."""
        k = self.sizes[i]
        tried = x.repeat_interleave(k, dim=0)
        tried[:, i] = torch.arange(k, dtype=x.dtype, device=x.device).repeat(len(x))
        return self(tried).reshape(len(x), k)
