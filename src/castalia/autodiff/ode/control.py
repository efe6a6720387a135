"""Step-size control: the error estimate, measured by the tolerances, decides the next step.

ratio = || error / (atol + rtol max(|y_0|, |y_1|)) ||; a step is accepted when ratio <= 1.
The next step is h * 0.9 ratio^-alpha previous^beta, the PI controller of Hairer's DOPRI5, which
rejects fewer steps than the plain rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from castalia.autodiff.flat_vector import Packing
from castalia.autodiff.ode.field import Field
from castalia.autodiff.ode.ode_step import Step
from castalia.autodiff.ode.options import Options

__all__ = ["Control", "Norm", "build_norm"]

Norm = Callable[[Tensor], Tensor]  # (N,) -> ()

SAFETY, SMALLEST, LARGEST = 0.9, 0.2, 10.0
BETA = 0.04


def rms(x: Tensor) -> Tensor:
    """Root of the mean square over the whole batch."""
    return torch.linalg.vector_norm(x) * x.numel() ** -0.5


def build_norm(kind: str, packing: Packing) -> Norm:
    """Return the RMS over everything, or the largest RMS of a row of the batch."""
    if kind == "rms":
        return rms
    rows = packing.rows()
    each = packing.size // rows

    def largest(x: Tensor) -> Tensor:
        parts = [part.view(rows, -1) for part in x.split(packing.sizes)]
        return torch.linalg.vector_norm(torch.cat(parts, dim=1), dim=1).amax() * each**-0.5

    return largest


class Control:
    """The size of the next step, and how it has been going.

    Parameters
    ----------
    options
        Tolerances, and the first step if it is given.
    norm
        How errors of the components become one number.
    order
        Order of the error estimate plus one.
    retreat
        Factor of the step after one that ended in no numbers at all.
    """

    def __init__(
        self, options: Options, norm: Norm, order: int, retreat: float = SMALLEST / 2
    ) -> None:
        self.rtol, self.norm, self.order, self.retreat = options.rtol, norm, order, retreat
        self.atol = torch.tensor(options.atol, dtype=torch.float64)
        self.h = options.step  # size of the next step, without sign
        self.previous = 1e-4  # ratio of the last accepted step
        self.alpha = 1 / order - 0.75 * BETA

    def scale(self, size: Tensor) -> Tensor:
        """Return what counts as an error of one where the state has this size."""
        return torch.add(self.atol, size, alpha=self.rtol)

    @torch.no_grad()
    def ratio(self, step: Step) -> float:
        """Measure the error of a step by the tolerances; the one number read a step."""
        size = torch.maximum(step.y0.abs(), step.y1.abs())
        return float(self.norm(step.error / self.scale(size)))

    def accepted(self, h: float, ratio: float, after_rejection: bool) -> None:
        """Propose the step after one of size h."""
        ratio = max(ratio, 1e-10)
        factor = SAFETY * ratio**-self.alpha * self.previous**BETA
        self.h = h * min(max(factor, SMALLEST), 1.0 if after_rejection else LARGEST)
        self.previous = max(ratio, 1e-4)

    def rejected(self, h: float, ratio: float) -> None:
        """Propose a smaller step."""
        known = math.isfinite(ratio)
        self.h = h * (max(SAFETY * ratio**-self.alpha, SMALLEST) if known else self.retreat)

    @torch.no_grad()
    def start(self, field: Field, t: float, y: Tensor, f: Tensor, span: float) -> None:
        """Choose the first step (Hairer, Nørsett, Wanner, II.4) unless it was given."""
        if self.h is not None:
            return
        scale = self.scale(y.abs())
        d0, d1 = torch.stack([self.norm(y / scale), self.norm(f / scale)]).tolist()
        h0 = 0.01 * d0 / d1 if min(d0, d1) > 1e-5 and d1 < math.inf else 1e-6
        h0 = min(h0, abs(span))
        forward = math.copysign(h0, span)
        slope = field.at(t + forward, y + forward * f)
        d2 = float(self.norm((slope - f) / scale)) / h0
        steepest = max(d1, d2)
        h1 = (0.01 / steepest) ** (1 / self.order) if steepest > 1e-15 else max(1e-6, 1e-3 * h0)
        self.h = min(100 * h0, h1) if math.isfinite(h1) else h0
