"""Gradients through equations: the adjoint of implicit constraints.

The notes' adjoint, with the signs of the Lagrangian L(z, w, lambda) = c(z, w) - lambda^T g(z, w):
where g(z, w) = 0 makes z a function of w,

    (dg/dz)^T lambda = (dc/dz)^T,        dc/dw = -lambda^T dg/dw  (+ the direct part of c in w).

Back-propagation is the case g_i = z_i - F_i(z_{i-1}, w_i): dg/dz is triangular, and solving it
from the last layer to the first gives lambda_i^T = lambda_{i+1}^T dF_{i+1}/dz_i.
Shapes: N size of z, M size of w.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy.sparse.linalg import LinearOperator, gmres
from torch import Tensor

from castalia.autodiff.flat_vector import Packing
from castalia.autodiff.functional_calls import differentiating
from castalia.errors import InvalidData, InvalidParameter, ShapeMismatch, SolverFailed
from castalia.utils.text import did_you_mean, listing

__all__ = ["ImplicitSystem", "adjoint_gradient", "adjoint_multipliers"]

Equations = Callable[[Any, Any], Any]
SOLVERS = ("auto", "dense", "gmres")
DENSE_UP_TO = 1000  # unknowns: above, the matrix costs more than its products


def adjoint_gradient(
    g: Equations,
    c: Callable[[Any, Any], Tensor],
    z: Any,
    w: Any,
    *,
    solver: str = "auto",
    tolerance: float = 1e-3,
) -> Any:
    """Gradient of c(z(w), w) by w, where z solves the constraints g(z, w) = 0.

    Nothing is said about how z was found: no iteration is unrolled and none is kept. The cost is
    one linear system with the transposed Jacobian dg/dz.

    Parameters
    ----------
    g
        Constraints g(z, w), as many numbers as z has.
    c
        Cost c(z, w), one number.
    z
        A solution: a tensor, or a tuple, list or dict of tensors.
    w
        What to differentiate by: a tensor, or a tuple, list or dict of tensors.
    solver
        ``"dense"`` forms dg/dz; ``"gmres"`` needs only products with its transpose, for large z;
        ``"auto"`` is dense up to 1,000 unknowns.
    tolerance
        Largest |g(z, w)|, relative to 1 + |z|, that still counts as a solution.

    Returns
    -------
    The gradient, in the structure of ``w``.

    Examples
    --------
    A number whose square is w: z^2 - w = 0, so d(z)/dw = 1 / (2 z).

    >>> z, w = torch.tensor(3.0), torch.tensor(9.0)
    >>> adjoint_gradient(lambda z, w: z**2 - w, lambda z, w: z, z, w)
    tensor(0.1667)
    """
    system = ImplicitSystem(g, c, z, w, tolerance)
    return system.by_w.unpack(system.gradient(system.multipliers(solver)))


def adjoint_multipliers(
    g: Equations,
    c: Callable[[Any, Any], Tensor],
    z: Any,
    w: Any,
    *,
    solver: str = "auto",
    tolerance: float = 1e-3,
) -> Any:
    """Multipliers lambda of the constraints, in the structure of z.

    They solve (dg/dz)^T lambda = (dc/dz)^T; lambda_i says how the cost answers to a push at
    constraint i. For the layers of a network they are the back-propagated gradients dc/dz_i.

    Examples
    --------
    >>> z, w = torch.tensor(3.0), torch.tensor(9.0)
    >>> adjoint_multipliers(lambda z, w: z**2 - w, lambda z, w: z, z, w)
    tensor(0.1667)
    """
    system = ImplicitSystem(g, c, z, w, tolerance)
    return system.by_z.unpack(system.multipliers(solver))


class ImplicitSystem:
    """g and c linearised at a solution: their products with the transposed Jacobians."""

    def __init__(self, g: Equations, c: Equations, z: Any, w: Any, tolerance: float) -> None:
        self.by_z = Packing(z, "adjoint_gradient", "z")
        self.by_w = Packing(w, "adjoint_gradient", "w")
        with differentiating():
            self.z = self.by_z.pack(z).detach().requires_grad_()
            self.w = self.by_w.pack(w).detach().requires_grad_()
            inside = self.by_z.unpack(self.z), self.by_w.unpack(self.w)
            self.residual = self._flat(g(*inside))
            self._check_residual(tolerance)
            self.cost = self._one_number(c(*inside))

    def multipliers(self, solver: str) -> Tensor:
        """Solve (dg/dz)^T lambda = (dc/dz)^T, (N, N)(N,) = (N,)."""
        if solver not in SOLVERS:
            raise InvalidParameter(
                f"adjoint_gradient: `solver` must be {listing(SOLVERS)}; got {solver!r}."
                f"{did_you_mean(str(solver), SOLVERS)}"
            )
        (right,) = self._gradients(self.cost, self.z)
        if solver == "dense" or (solver == "auto" and len(self.z) <= DENSE_UP_TO):
            return self._dense(right)
        return self._gmres(right)

    def gradient(self, multipliers: Tensor) -> Tensor:
        """Return dc/dw - lambda^T dg/dw, (M,)."""
        (direct,) = self._gradients(self.cost, self.w)
        (through,) = self._gradients(self.residual, self.w, multipliers)
        return direct - through

    def _dense(self, right: Tensor) -> Tensor:
        units = torch.eye(len(self.z), dtype=self.z.dtype, device=self.z.device)
        (jacobian,) = self._gradients(self.residual, self.z, units, batched=True)  # dg_i/dz_j
        found, info = torch.linalg.solve_ex(jacobian.T, right)
        if info or not torch.isfinite(found).all():
            raise SolverFailed(
                "adjoint_gradient: dg/dz must be invertible, or z is not a function of w; got a "
                f"singular Jacobian of {len(self.z)} constraints. Remove repeated constraints."
            )
        return found

    def _gmres(self, right: Tensor) -> Tensor:
        def transposed(v: np.ndarray) -> np.ndarray:
            (product,) = self._gradients(self.residual, self.z, torch.as_tensor(v).to(self.z))
            return product.cpu().double().numpy()

        n = len(self.z)
        operator = LinearOperator((n, n), matvec=transposed, dtype=np.float64)
        close = 1e-10 if self.z.dtype == torch.float64 else 1e-6
        found, info = gmres(
            operator, right.cpu().double().numpy(), rtol=close, restart=min(n, 100), maxiter=100
        )
        if info:
            raise SolverFailed(
                f"adjoint_gradient: GMRES must converge to {close:g}; got no convergence in "
                f"{info} iterations over {n:,} unknowns. Scale the constraints, or use "
                'solver="dense".'
            )
        return torch.from_numpy(found).to(self.z)

    @staticmethod
    def _gradients(
        of: Tensor, by: Tensor, weights: Tensor | None = None, batched: bool = False
    ) -> tuple[Tensor, ...]:
        if not of.requires_grad:
            return (by.new_zeros(by.shape),)
        return torch.autograd.grad(
            of,
            by,
            weights,
            retain_graph=True,
            allow_unused=True,
            materialize_grads=True,
            is_grads_batched=batched,
        )

    def _flat(self, residual: Any) -> Tensor:
        """Return the constraints as one vector, whatever structure they came in."""
        parts = list(residual.values()) if isinstance(residual, dict) else residual
        parts = [parts] if isinstance(parts, Tensor) else parts
        if not isinstance(parts, list | tuple) or not all(isinstance(p, Tensor) for p in parts):
            raise InvalidData(
                "adjoint_gradient: `g(z, w)` must return a tensor, or a tuple, list or dict of "
                f"tensors; got {type(residual).__name__}."
            )
        return torch.cat([part.reshape(-1) for part in parts])

    def _check_residual(self, tolerance: float) -> None:
        if len(self.residual) != len(self.z):
            raise ShapeMismatch(
                f"adjoint_gradient: `g(z, w)` must give one equation for each of the "
                f"{len(self.z)} numbers of `z`; got {len(self.residual)}."
            )
        largest = float(self.residual.detach().abs().max())
        if not largest <= tolerance * (1 + float(self.z.detach().abs().max())):
            raise InvalidData(
                f"adjoint_gradient: `z` must solve g(z, w) = 0; got a largest residual of "
                f"{largest:.3g}. Solve for z first, or raise `tolerance`."
            )

    @staticmethod
    def _one_number(cost: Any) -> Tensor:
        if not isinstance(cost, Tensor) or cost.numel() != 1:
            shape = tuple(getattr(cost, "shape", ()))
            raise ShapeMismatch(
                f"adjoint_gradient: `c(z, w)` must be a tensor of one number; got shape {shape}."
            )
        return cost.reshape(())
