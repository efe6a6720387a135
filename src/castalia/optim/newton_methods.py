"""Newton and Gauss-Newton steps with the whole curvature matrix, for few parameters.

Newton:       w <- w - H^{-1} g;  damped: (H + lambda I)^{-1};  saddle-free: (|H| + lambda I)^{-1}
Gauss-Newton: w <- w - (G + lambda I)^{-1} g,  G = J^T H_L J, with lambda by Levenberg-Marquardt.
References: 2014, Dauphin et al., Identifying and attacking the saddle point problem, arXiv
1406.2572; 1963, Marquardt, An algorithm for least-squares estimation of nonlinear parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor

from castalia.optim.curvature_optimizer import CurvatureOptimizer
from castalia.optim.levenberg_marquardt import LEAST, adjust_damping
from castalia.optim.linesearch import Point, strong_wolfe
from castalia.optim.quadratic_models import loss_of_answer
from castalia.optim.vector import as_float, check_choice, check_least, flatten

__all__ = ["GaussNewton", "Newton"]

LIMIT = 2000
SEARCHES = (None, "backtracking", "strong_wolfe")


class Newton(CurvatureOptimizer):
    """Newton's method with the whole Hessian.

    A quadratic is solved in one step, and near a minimum the number of right digits doubles with
    every step. Unmodified it is drawn to the nearest stationary point, saddles included;
    ``saddle_free`` takes the absolute values of the curvatures and so descends from saddles. For
    up to a few thousand parameters: memory n^2, time n^3. Works on one parameter group.

    Parameters
    ----------
    params
        What it updates.
    lr
        Length of a step; below 1 is the damped Newton method of optimization texts.
    damping
        Added to every curvature: larger values turn the step towards the gradient and shorten it.
    saddle_free
        Use |H|, the Hessian with the absolute values of its eigenvalues.
    line_search
        None for the plain step; ``"backtracking"`` halves it until the loss falls,
        ``"strong_wolfe"`` may also lengthen it, and both follow the gradient where the step would
        not descend.
    limit
        Most parameters.

    Notes
    -----
    ``step(closure)``: the closure returns the loss with its graph and does not call ``backward()``.
    Directions without curvature (|lambda| below rounding) are left alone.

    Examples
    --------
    >>> w = torch.tensor([5.0, -3.0], requires_grad=True)
    >>> optimizer = Newton([w])
    >>> _ = optimizer.step(lambda: (w[0] - 1) ** 2 + 10 * (w[1] - 2) ** 2)
    >>> w.detach()
    tensor([1., 2.])
    """

    closure: ClassVar[str] = "loss"

    def __init__(
        self,
        params: Any,
        lr: float = 1.0,
        *,
        damping: float = 0.0,
        saddle_free: bool = False,
        line_search: str | None = None,
        limit: int = LIMIT,
    ) -> None:
        check_least(self, "damping", damping, 0.0)
        check_choice(self, "line_search", line_search, SEARCHES)
        defaults = {
            "lr": lr,
            "damping": damping,
            "saddle_free": saddle_free,
            "line_search": line_search,
            "limit": limit,
        }
        super().__init__(params, defaults)
        self._check_size(limit)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        """Take one Newton step; return the loss before it.

        Parameters
        ----------
        closure
            Returns the loss with its graph; it does not call ``backward()``.
        """
        closure, group = self._closure(closure), self.param_groups[0]
        model, loss = self._model(closure, "hessian")
        matrix = model.matrix()
        self._count(matrix.shape[0])
        step = _solve(matrix, -model.gradient, group["damping"], absolute=group["saddle_free"])
        place, length = self._place(), group["lr"]
        if group["line_search"] is None:
            self._move_to(torch.add(place, step, alpha=length))
            return loss
        slope = float(model.gradient @ step)
        if not slope < 0:
            step = -model.gradient
            slope = float(model.gradient @ step)
        if group["line_search"] == "backtracking":
            self._backtrack(closure, place, step, loss, slope, length)
        else:
            self._wolfe(closure, place, step, Point(0.0, loss, slope, model.gradient), length)
        return loss

    def _wolfe(
        self,
        closure: Callable[[], Any],
        place: Tensor,
        direction: Tensor,
        start: Point,
        length: float,
    ) -> None:
        """Search along the step; gradients on the way are computed here."""

        def ray(t: float) -> Point:
            self._move_to(torch.add(place, direction, alpha=t))
            self._count()
            with torch.enable_grad():
                loss = loss_of_answer(self._name, closure())
                pieces = torch.autograd.grad(loss, self.parameters, materialize_grads=True)
            gradient = flatten(pieces)
            return Point(t, as_float(loss), float(gradient @ direction), gradient)

        found = strong_wolfe(ray, start, length, curvature=0.9)
        self._move_to(torch.add(place, direction, alpha=found.length))


def _solve(matrix: Tensor, right: Tensor, damping: float, *, absolute: bool) -> Tensor:
    """Solve (H + lambda I) x = b by eigenvalues, with |H| if ``absolute``."""
    values, vectors = torch.linalg.eigh(matrix)
    values = (values.abs() if absolute else values) + damping
    rounding = values.numel() * torch.finfo(values.dtype).eps * values.abs().max()
    inverse = torch.where(values.abs() > rounding, 1 / values, torch.zeros_like(values))
    return vectors @ (inverse * (vectors.T @ right))


class GaussNewton(CurvatureOptimizer):
    """Gauss-Newton steps with Levenberg-Marquardt damping.

    The curvature is that of the loss seen through the linearised network, so the step always
    descends, and for residuals that vanish it converges like Newton's. Damping follows how well
    the model predicted the last reduction; a step that does not reduce the loss is taken back and
    tried again with more. The method of choice for small networks with squared error. Memory n^2,
    time n^3. Works on one parameter group.

    Parameters
    ----------
    params
        What it updates.
    lr
        Length of a step.
    damping
        Lambda at the start; positive.
    factor
        By how much lambda changes.
    attempts
        Most steps to try before the weights stay as they were.
    limit
        Most parameters.

    Notes
    -----
    ``step(closure)``: the closure returns ``(outputs, loss_of)``, the network's outputs with their
    graph and the function from outputs to the loss, to which penalties on the weights may be added.
    Their curvature is exact.

    Examples
    --------
    >>> w = torch.zeros(2, requires_grad=True)
    >>> x = torch.linspace(-1, 1, 20)
    >>> y = torch.tanh(2 * x + 0.5)
    >>> optimizer = GaussNewton([w])
    >>> for _ in range(20):
    ...     loss = optimizer.step(
    ...         lambda: (torch.tanh(w[0] * x + w[1]), lambda out: (out - y).square().mean())
    ...     )
    >>> loss < 1e-10
    True
    """

    closure: ClassVar[str] = "outputs"

    def __init__(
        self,
        params: Any,
        lr: float = 1.0,
        *,
        damping: float = 1e-3,
        factor: float = 3.0,
        attempts: int = 12,
        limit: int = LIMIT,
    ) -> None:
        check_least(self, "damping", damping, LEAST)
        check_least(self, "factor", factor, 1.0)
        check_least(self, "attempts", attempts, 1)
        defaults = {
            "lr": lr,
            "damping": damping,
            "factor": factor,
            "attempts": attempts,
            "limit": limit,
        }
        super().__init__(params, defaults)
        self._check_size(limit)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        """Take one damped Gauss-Newton step; return the loss before it.

        Parameters
        ----------
        closure
            Returns ``(outputs, loss_of)``; it does not call ``backward()``.
        """
        closure, group, memory = self._closure(closure), self.param_groups[0], self.memory
        model, loss = self._model(closure, "gauss_newton")
        matrix = model.matrix()
        self._count(matrix.shape[0])
        values, vectors = torch.linalg.eigh(matrix)
        values, slopes = values.clamp_min(0.0), vectors.T @ model.gradient
        damping, place = memory.get("damping", group["damping"]), self._place()
        for _ in range(group["attempts"]):
            step = -group["lr"] * slopes / (values + damping)  # in the basis of eigenvectors
            found = self._loss_at(closure, place + vectors @ step)
            predicted = float(-(slopes @ step) - 0.5 * (values @ step.square()))
            ratio = (loss - found) / predicted if predicted > 0 else float("nan")
            damping = adjust_damping(damping, ratio, group["factor"])
            if found <= loss:
                break
        else:
            self._move_to(place)
        memory["damping"] = damping
        return loss
