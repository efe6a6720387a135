"""Radau IIA, order 5: three implicit stages, for equations with rates that differ by far.

Z = h (A x I) F(y + Z), with Z_i = Y_i - y for the stages Y and F_i = f(t + c_i h, Y_i); the last
stage is the end of the step. Newton's method with one Jacobian J for all stages: A^-1 has a real
eigenvalue and a complex pair, which takes the system of 3 N equations to one real and one complex
system of N, with the matrices lambda / h - J. Gradients come from the implicit function theorem:
with M = I - h A x J_j, w = M^-T g, v_j = h sum_i A_ij w_i, they are v_j df_j/d(y, theta), summed.

Shapes: N size of the state; Z (3, N); L, R (2, 3), (3, 2) left and right eigenvectors of A^-1.
References: 1996, Hairer, Wanner, Solving Ordinary Differential Equations II, IV.8; the error
estimate is that of its IV.8.20.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from castalia.autodiff.derivatives import rows_of
from castalia.autodiff.ode.control import Control
from castalia.autodiff.ode.field import Field
from castalia.autodiff.ode.ode_step import Step

__all__ = ["ERROR_ORDER", "Radau"]

ERROR_ORDER = 4  # of the error estimate, plus one
ITERATIONS = 6  # of Newton's method, at most
SLOW = 1e-3  # contraction a Newton step above which the Jacobian is computed again

S = math.sqrt(6)
NODES = np.array([(4 - S) / 10, (4 + S) / 10, 1.0])
A = np.array(
    [
        [(88 - 7 * S) / 360, (296 - 169 * S) / 1800, (-2 + 3 * S) / 225],
        [(296 + 169 * S) / 1800, (88 + 7 * S) / 360, (-2 - 3 * S) / 225],
        [(16 - S) / 36, (16 + S) / 36, 1 / 9],
    ]
)
ESTIMATE = np.array([-13 - 7 * S, -13 + 7 * S, -1]) / 3
# row i: the polynomial in theta that is 1 at node i and 0 at the others and at 0
DENSE = np.linalg.inv(NODES[:, None] ** [1, 2, 3]).T


def _eigen() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Eigenvalues of A^-1, the real one and one of the pair, with left and right vectors."""
    values, right = np.linalg.eig(np.linalg.inv(A))
    left = np.linalg.inv(right)
    chosen = [int(np.argmin(abs(values.imag))), int(np.argmax(values.imag))]
    return (
        values[chosen],
        left[chosen],
        right[:, chosen] * [1, 2],
    )  # the pair is twice its real part


class Radau:
    """A step of Radau IIA on flat vectors, with what it keeps from one to the next.

    Parameters
    ----------
    field
        The right-hand side.
    like
        A state, for its type and device.
    control
        How errors are measured.
    """

    def __init__(self, field: Field, like: Tensor, control: Control) -> None:
        self.field, self.control = field, control
        whole = torch.complex128 if like.dtype == torch.float64 else torch.complex64
        self.eigenvalues, self.left, self.right = (
            torch.as_tensor(part, dtype=whole, device=like.device) for part in _eigen()
        )
        self.nodes, self.a, self.inverse, self.estimate, self.dense = (
            like.new_tensor(part) for part in (NODES, A, np.linalg.inv(A), ESTIMATE, DENSE)
        )
        self.eye = torch.eye(len(like), dtype=whole, device=like.device)
        self.enough = max(
            10 * torch.finfo(like.dtype).eps / control.rtol, min(0.03, control.rtol**0.5)
        )
        self.restart()

    def restart(self) -> None:
        """Forget Jacobian, factors and the last step."""
        self.jacobian: Tensor | None = None
        self.factors: Any = None
        self.h = math.nan
        self.tried: Step | None = None
        self.accepted: Step | None = None

    def step(self, t: float, y: Tensor, f: Tensor, t1: float) -> Step:
        """Go from (t, y), where the derivative is f, to t1; the error is NaN where Newton fails."""
        if self.tried is not None and self.tried.t1 == t:
            self.accepted = self.tried
        with torch.no_grad():
            stages = self._stages(t, y.detach(), t1)
            if stages is None:
                return Step(t, t1, y, y, f.detach(), error=torch.full_like(y, math.nan))
            error = self._error(t, y.detach(), f.detach(), stages, t1 - t)
        if torch.is_grad_enabled():
            inside = self.field.tensors(t, y)
            stages = _Stages.apply(self, t, t1 - t, stages, y, *inside)
        step = Step(t, t1, y, y + stages[2], f.detach(), error=error)
        step.stages, step.dense = stages / (t1 - t), self.dense
        self.tried = step
        return step

    def slopes(self, t: float, h: float, y: Tensor, stages: Tensor) -> Tensor:
        """Return F (3, N)."""
        at = zip(self.nodes.mul(h).add_(t).unbind(), (y + stages).unbind(), strict=True)
        return torch.stack([self.field(time, stage) for time, stage in at])

    def _stages(self, t: float, y: Tensor, t1: float) -> Tensor | None:
        """Solve for Z; with a Jacobian from here where that from before does not do."""
        fresh = self.jacobian is None
        while True:
            if self.jacobian is None:
                self.jacobian, self.h = jacobian_at(self.field, t, y)[0], math.nan
            found = self._newton(t, y, t1 - t)
            if found is not None or fresh:
                return found
            self.jacobian, fresh = None, True

    def _newton(self, t: float, y: Tensor, h: float) -> Tensor | None:
        self._factor(h)
        scale = self.control.scale(y.abs())
        stages = self._guess(t, y, h)
        before, rate = math.nan, math.nan
        for i in range(ITERATIONS):
            rest = self.slopes(t, h, y, stages) - self.inverse @ stages / h
            change = self._solve(self.left @ rest.to(self.left.dtype))
            size = float(torch.linalg.vector_norm(change / scale)) / change.numel() ** 0.5
            rate = size / before if i else math.nan
            left = ITERATIONS - 1 - i
            if not math.isfinite(size) or (
                i and (rate >= 1 or _after(rate, left, size) > self.enough)
            ):
                break
            stages = stages + change
            if size == 0 or (i and rate / (1 - rate) * size < self.enough):
                if i > 1 and rate > SLOW:
                    self.jacobian = None  # from the next step on
                return stages
            before = size
        return None

    def _factor(self, h: float) -> None:
        if h != self.h and self.jacobian is not None:
            matrices = self.eigenvalues[:, None, None] / h * self.eye - self.jacobian
            self.factors, self.h = torch.linalg.lu_factor_ex(matrices)[:2], h

    def _solve(self, rest: Tensor) -> Tensor:
        """Return the change of Z (3, N) for L times the residuals (2, N)."""
        found = torch.linalg.lu_solve(*self.factors, rest[..., None])[..., 0]
        return (self.right @ found).real

    def _guess(self, t: float, y: Tensor, h: float) -> Tensor:
        """Extrapolate the polynomial of the last step."""
        if self.accepted is None or self.accepted.stages is None:
            return y.new_zeros(3, len(y))
        last = self.accepted
        places = [t + c * h for c in NODES.tolist()]
        return last.at(places, self.field).detach() - y

    def _error(self, t: float, y: Tensor, f: Tensor, stages: Tensor, h: float) -> Tensor:
        """Filter the embedded formula by (lambda / h - J)^-1, twice where it seems too large."""
        combined = self.estimate @ stages / h
        error = self._filtered(f + combined)
        first = self.accepted is None or (self.tried is not None and self.tried.t0 == t)
        scale = self.control.scale(torch.maximum(y.abs(), (y + stages[2]).abs()))
        if first and float(self.control.norm(error / scale)) > 1:
            error = self._filtered(self.field.at(t, y + error) + combined)
        return error

    def _filtered(self, v: Tensor) -> Tensor:
        factors, pivots = self.factors
        whole = v.to(factors.dtype)[:, None]
        return torch.linalg.lu_solve(factors[0], pivots[0], whole)[:, 0].real


def _after(rate: float, left: int, size: float) -> float:
    """Error to be expected after the iterations that are left."""
    return rate**left / (1 - rate) * size


def jacobian_at(field: Field, t: float, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return df/dy (N, N), the slope with its graph, and the state it hangs on."""
    with torch.enable_grad():
        state = y.detach().requires_grad_()
        slope = field.at(t, state)
        (rows,) = rows_of(slope, [state])
    return y.new_zeros(len(y), len(y)) if rows is None else rows.detach(), slope, state


class _Stages(torch.autograd.Function):
    """Z as a function of y and of the parameters, by the implicit function theorem."""

    @staticmethod
    def forward(
        ctx: Any, method: Radau, t: float, h: float, stages: Tensor, y: Tensor, *inside: Tensor
    ) -> Tensor:
        ctx.method, ctx.t, ctx.h = method, t, h
        ctx.save_for_backward(stages, y, *inside)
        return stages.clone()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        stages, y, *inside = ctx.saved_tensors
        method, n = ctx.method, len(y)
        times = [ctx.t + c * ctx.h for c in NODES.tolist()]
        found = [jacobian_at(method.field, *at) for at in zip(times, y + stages, strict=True)]
        each = torch.stack([part[0] for part in found])  # (3, N, N)
        # block (j, i) of M^T is delta_ij - h A_ij J_j^T
        blocks = -ctx.h * torch.einsum("ij,jab->jbia", method.a, each).reshape(3 * n, 3 * n)
        blocks.diagonal().add_(1)
        w = torch.linalg.solve(blocks, grad.reshape(-1)).view(3, n)
        v = ctx.h * method.a.T @ w
        wanted = [p for p, need in zip(inside, ctx.needs_input_grad[5:], strict=True) if need]
        sums: list[Any] = [None] * len(wanted)
        for (_, slope, _), part in zip(found, v, strict=True):
            if wanted and slope.requires_grad:
                parts = torch.autograd.grad(
                    slope, wanted, part, allow_unused=True, retain_graph=True
                )
                sums = [_sum(a, b) for a, b in zip(sums, parts, strict=True)]
        by = iter(sums)
        by_parameter = [next(by) if need else None for need in ctx.needs_input_grad[5:]]
        return None, None, None, None, (w - grad).sum(0), *by_parameter


def _sum(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    return b if a is None else a if b is None else a + b
