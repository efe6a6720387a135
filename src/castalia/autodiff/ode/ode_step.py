"""One accepted step and the interpolation inside it.

y(t_0 + theta h) = y_0 + h sum_i k_i (p_i1 theta + p_i2 theta^2 + …), with the stages k_i and the
coefficients p of the method's own interpolant, or of the cubic Hermite polynomial.
Shapes: N size of the state, S stages, D degree, M times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from castalia.autodiff.ode.field import Field
from castalia.autodiff.ode.tableaux import HERMITE

__all__ = ["Step"]


@dataclass
class Step:
    """From (t0, y0) to (t1, y1).

    Attributes
    ----------
    f0, f1
        The derivative at both ends; f1 is None as long as nobody needed it.
    stages, dense
        Derivatives (S, N) and interpolation coefficients (S, D) of the method, or None.
    error
        Estimate of the local error (N,) of an adaptive method.
    """

    t0: float
    t1: float
    y0: Tensor
    y1: Tensor
    f0: Tensor
    f1: Tensor | None = None
    stages: Tensor | None = None
    dense: Tensor | None = None
    error: Any = None

    def at(self, times: Sequence[float], field: Field) -> Tensor:
        """Return the states (M, N) at times inside the step."""
        if len(times) == 1 and times[0] == self.t1:
            return self.y1[None]
        h = self.t1 - self.t0
        stages, dense = self._interpolant(field)
        theta = self.y0.new_tensor([(t - self.t0) / h for t in times])
        powers = theta[:, None] ** torch.arange(1, dense.shape[1] + 1, device=theta.device)
        return torch.addmm(self.y0, powers @ dense.T, stages, alpha=h)  # (M, D)(D, S)(S, N)

    def _interpolant(self, field: Field) -> tuple[Tensor, Tensor]:
        """Return stages (S, N) and coefficients (S, D)."""
        if self.stages is None or self.dense is None:
            if self.f1 is None:
                self.f1 = field.at(self.t1, self.y1)
            chord = (self.y1 - self.y0) / (self.t1 - self.t0)
            self.stages = torch.stack([self.f0, self.f1, chord])
            self.dense = self.y0.new_tensor(HERMITE)
        return self.stages, self.dense
