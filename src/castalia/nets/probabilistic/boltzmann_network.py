"""Boltzmann machine: binary units with a weight between any two.

E(x) = -x^T U x - b^T x,  P(x) = exp(-E(x)) / Z,  P(x_i = 1 | rest) = sigma(b_i + sum_j W_ij x_j)
with W = U + U^T and no weight from a unit to itself.  Shapes: B batch, D units.
Reference: 1985, Ackley, Hinton, Sejnowski, A learning algorithm for Boltzmann machines.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.errors import InvalidParameter

__all__ = ["BoltzmannNetwork"]

ENUMERABLE = 20  # units up to which 2^n states are summed one by one
CHUNK = 2**16  # states at a time


class BoltzmannNetwork(nn.Module):
    """Energy, conditionals and Gibbs steps of a fully visible Boltzmann machine.

    Parameters
    ----------
    inputs
        Number D of units.

    Examples
    --------
    >>> net = BoltzmannNetwork(3)
    >>> net(torch.ones(2, 3)).shape, net.log_z().detach()  # weights begin at 0: 3 ln 2
    (torch.Size([2, 3]), tensor(2.0794))
    """

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.upper = nn.Parameter(torch.zeros(inputs, inputs))  # only what lies above the diagonal
        self.bias = nn.Parameter(torch.zeros(inputs))

    @property
    def coupling(self) -> Tensor:
        """Weights between units, symmetric with zeros on the diagonal, (D, D)."""
        above = self.upper.triu(1)
        return above + above.T

    def forward(self, x: Tensor) -> Tensor:  # (B, D)
        """Return the log-odds of each unit given all others, (B, D)."""
        return torch.addmm(self.bias, x, self.coupling)

    def free_energy(self, x: Tensor) -> Tensor:
        """Return E, (B,); nothing is hidden."""
        return -(x * (x @ self.upper.triu(1))).sum(dim=1) - x @ self.bias

    def log_pseudo(self, x: Tensor) -> Tensor:
        """Return sum_i ln P(x_i | all others), (B,)."""
        return F.logsigmoid((2 * x - 1) * self(x)).sum(dim=1)

    def contrast(self, x: Tensor, p: Tensor, drawn: Tensor, q: Tensor) -> Tensor:
        """Return sum_i p_i F(x_i) - sum_j q_j F(drawn_j), ()."""
        return p @ self.free_energy(x) - q @ self.free_energy(drawn)

    def gibbs(self, x: Tensor, source: torch.Generator | None = None, beta: float = 1.0) -> Tensor:
        """Draw every unit in turn given the others, at an inverse temperature, (B, D)."""
        x, coupling = x.clone(), self.coupling
        chance = torch.rand(x.shape, generator=source, device=x.device, dtype=x.dtype)
        for i in range(x.shape[1]):
            p = (beta * (x @ coupling[i] + self.bias[i])).sigmoid()
            x[:, i] = (chance[:, i] < p).to(x.dtype)
        return x

    def draw_hidden(self, x: Tensor, source: torch.Generator | None = None) -> Tensor:
        """Return the units as they are: none is hidden."""
        return x

    def reconstruct(self, x: Tensor) -> Tensor:
        """Return the mean of each unit given all others, (B, D)."""
        return self(x).sigmoid()

    def log_z(self) -> Tensor:
        """Return ln Z by a sum over all states; gradients flow, ()."""
        d = len(self.bias)
        if d > ENUMERABLE:
            raise InvalidParameter(
                f"BoltzmannNetwork: ln Z is summed exactly up to {ENUMERABLE} units; got {d}. "
                "Estimate it by annealed importance sampling."
            )
        codes = torch.arange(2**d, device=self.bias.device)[:, None]
        states = ((codes >> torch.arange(d, device=self.bias.device)) & 1).to(self.bias)
        parts = [(-self.free_energy(part)).logsumexp(dim=0) for part in states.split(CHUNK)]
        return torch.stack(parts).logsumexp(dim=0)
