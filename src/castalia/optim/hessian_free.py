"""Hessian-free optimization: Newton-like steps found by conjugate gradients, without a matrix.

(B + lambda I) p = -g is solved approximately by products with B, which cost about two gradients
each; B is the Gauss-Newton matrix where the closure shows the outputs, else the Hessian.
Reference: 2010, Martens, Deep learning via Hessian-free optimization, ICML.
Departs from it: the preconditioner is estimated from products with random signs instead of
gradients of single rows, and steps are halved, not shortened by a fifth, until the loss falls.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor

from castalia.optim.curvature_optimizer import CurvatureOptimizer
from castalia.optim.levenberg_marquardt import LEAST, adjust_damping
from castalia.optim.quadratic_models import GaussNewtonModel, HessianModel
from castalia.optim.truncated import Truncated, truncated_solve
from castalia.optim.vector import check_choice, check_least

__all__ = ["HessianFree"]

CURVATURES = ("auto", "gauss_newton", "hessian")
PROBES = 4  # products spent on the preconditioner of a step
POWER = 0.75  # Martens, section 4.7


class HessianFree(CurvatureOptimizer):
    """Truncated Newton steps for networks of any size.

    Each step models the loss by a quadratic, minimises the model by conjugate gradients until they
    stall, goes back over their iterates while an earlier one is better on the true loss, and
    adjusts the damping by how well the model predicted. Strong where gradient descent crawls along
    narrow valleys (deep autoencoders); needs large batches, since a step trusts the batch's
    curvature. Works on one parameter group.

    Parameters
    ----------
    params
        What it updates.
    lr
        Length of a step.
    damping
        Lambda at the start; positive. It follows the Levenberg-Marquardt schedule.
    factor
        By how much lambda changes.
    products
        Most products with the curvature in a step; each costs about two gradients.
    progress
        Conjugate gradients stop when an iteration lowers the model by less than this share.
    decay
        Share of the last step that conjugate gradients start from.
    curvature
        ``"gauss_newton"``, ``"hessian"``, or ``"auto"``: the former where the closure returns the
        outputs.
    preconditioner
        None, or ``"diagonal"``: an estimate of the curvature's diagonal, at 4 products a step.

    Notes
    -----
    ``step(closure)``: the closure returns ``(outputs, loss_of)``, the network's outputs with their
    graph and the function from outputs to the loss, or the loss alone; it does not call
    ``backward()``. With the loss alone products are those of the Hessian, which may be
    indefinite: conjugate gradients then stop at the first direction that bends downwards, and
    damping grows.

    Examples
    --------
    >>> w = torch.tensor([-1.0, 1.0], requires_grad=True)
    >>> optimizer = HessianFree([w])
    >>> for _ in range(30):  # Rosenbrock's valley
    ...     loss = optimizer.step(lambda: (1 - w[0]) ** 2 + 100 * (w[1] - w[0] ** 2) ** 2)
    >>> loss < 1e-8
    True
    """

    closure: ClassVar[str] = "either"

    def __init__(
        self,
        params: Any,
        lr: float = 1.0,
        *,
        damping: float = 1e-2,
        factor: float = 1.5,
        products: int = 30,
        progress: float = 5e-4,
        decay: float = 0.95,
        curvature: str = "auto",
        preconditioner: str | None = None,
    ) -> None:
        check_least(self, "damping", damping, LEAST)
        check_least(self, "factor", factor, 1.0)
        check_least(self, "products", products, 1)
        check_least(self, "progress", progress, 0.0)
        check_least(self, "decay", decay, 0.0, below=1.0)
        check_choice(self, "curvature", curvature, CURVATURES)
        check_choice(self, "preconditioner", preconditioner, (None, "diagonal"))
        defaults = {
            "lr": lr,
            "damping": damping,
            "factor": factor,
            "products": products,
            "progress": progress,
            "decay": decay,
            "curvature": curvature,
            "preconditioner": preconditioner,
        }
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        """Take one step; return the loss before it.

        Parameters
        ----------
        closure
            Returns ``(outputs, loss_of)`` or the loss; it does not call ``backward()``.
        """
        closure, group, memory = self._closure(closure), self.param_groups[0], self.memory
        model, loss = self._model(closure, group["curvature"])
        if not model.gradient.any():
            return loss
        damping, place = memory.get("damping", group["damping"]), self._place()
        found = self._solve(model, damping)
        step, value, there = self._best_iterate(closure, place, found)
        slope = float(model.gradient @ step)
        if not slope < 0:  # a bad start of conjugate gradients: follow the gradient
            step, value, there = model.gradient / -damping, math.nan, None
            slope = float(model.gradient @ step)
        length, reached = self._backtrack(closure, place, step, loss, slope, group["lr"], there)
        # The damped model at the step is phi; without its damping it predicts the loss.
        predicted = 0.5 * damping * float(step @ step) - value
        ratio = (loss - reached) / predicted if length == group["lr"] and predicted else math.nan
        trusted = math.nan if found.indefinite else ratio
        memory["damping"] = adjust_damping(damping, trusted, group["factor"])
        memory["step"] = length * step
        return loss

    def _solve(self, model: HessianModel | GaussNewtonModel, damping: float) -> Truncated:
        """Minimise the damped model, from where the last step pointed to."""
        group = self.param_groups[0]

        def product(v: Tensor) -> Tensor:
            return torch.add(model.product(v), v, alpha=damping)

        last = self.memory.get("step")
        start = torch.zeros_like(model.gradient) if last is None else group["decay"] * last
        scale = self._diagonal(model, damping) if group["preconditioner"] else None
        found = truncated_solve(
            product,
            -model.gradient,
            start,
            scale=scale,
            most=group["products"],
            progress=group["progress"],
        )
        self._count(found.products)
        return found

    def _diagonal(self, model: HessianModel | GaussNewtonModel, damping: float) -> Tensor:
        """Estimate (diag B + lambda)^(3/4): E[z * B z] = diag B for random signs z."""
        shape = (PROBES, model.gradient.numel())
        chance = torch.Generator().manual_seed(self.memory["steps"])  # the same after a resume
        signs = torch.randint(0, 2, shape, generator=chance).to(model.gradient) * 2 - 1
        self._count(PROBES)
        estimate = (signs * model.products(signs)).mean(dim=0)
        return estimate.clamp_min(0.0).add_(damping).pow_(POWER)

    def _best_iterate(
        self, closure: Callable[[], Any], place: Tensor, found: Truncated
    ) -> tuple[Tensor, float, float | None]:
        """Go back while an earlier iterate is clearly better; return step, phi and loss."""
        best = (found.iterates[-1], found.values[-1], math.inf)
        slack = torch.finfo(place.dtype).eps ** 0.75  # rounding must not decide
        for step, value in zip(reversed(found.iterates), reversed(found.values), strict=True):
            loss = self._loss_at(closure, torch.add(place, step, alpha=self.param_groups[0]["lr"]))
            if math.isfinite(best[2]) and not loss < best[2] - slack * abs(best[2]):
                break
            best = (step, value, loss if math.isfinite(loss) else math.inf)
        return best
