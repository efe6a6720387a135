"""Non-linear conjugate gradients.

d_t = -g_t + beta_t d_{t-1},  w <- w + alpha_t d_t with alpha_t from a line search along d_t.
Fletcher-Reeves:  beta = g_t g_t / g_{t-1} g_{t-1}
Polak-Ribiere+:   beta = max(0, g_t (g_t - g_{t-1}) / g_{t-1} g_{t-1})
References: 1964, Fletcher, Reeves, Function minimization by conjugate gradients; 1969, Polak,
Ribiere; 1992, Gilbert, Nocedal, Global convergence properties of conjugate gradient methods for
optimization (the +).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from castalia.optim.linesearch import Point, Ray, exact_line_search, strong_wolfe
from castalia.optim.vector import VectorOptimizer, as_float, check_choice, check_least

__all__ = ["ConjugateGradient"]

FORMULAS = ("polak_ribiere", "fletcher_reeves", "steepest")
SEARCHES = ("strong_wolfe", "exact")


class ConjugateGradient(VectorOptimizer):
    """Conjugate gradients with a line search.

    On a quadratic of n dimensions with the exact search it is done in n iterations, and its
    directions are conjugate, d_i H d_j = 0. Elsewhere it needs the memory of three gradients and,
    like every line search, a loss without noise: large batches. It restarts from the gradient
    every n iterations and whenever its direction would not descend. Works on one parameter group.

    Parameters
    ----------
    params
        What it updates.
    lr
        Scale of the very first trial length; later trials follow from the last step.
    formula
        ``"polak_ribiere"`` (with the +), ``"fletcher_reeves"``, or ``"steepest"``: beta = 0, which
        is steepest descent with a line search.
    line_search
        ``"strong_wolfe"``, or ``"exact"``, which is worth its cost on quadratics.
    iterations
        Directions searched in one ``step``; each after the first saves one evaluation.
    search_evaluations
        Most evaluations of one line search.

    Notes
    -----
    ``step(closure)`` takes torch's usual closure, which clears the gradients, computes the loss,
    calls ``backward()`` and returns the loss.

    Examples
    --------
    >>> w = torch.zeros(3, requires_grad=True)
    >>> Q, b = torch.diag(torch.tensor([1.0, 10.0, 100.0])), torch.ones(3)
    >>> optimizer = ConjugateGradient([w], line_search="exact", iterations=3)
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = 0.5 * w @ Q @ w - b @ w
    ...     loss.backward()
    ...     return loss
    >>> _ = optimizer.step(closure)
    >>> bool((Q @ w - b).norm() < 1e-4)
    True
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1.0,
        *,
        formula: str = "polak_ribiere",
        line_search: str = "strong_wolfe",
        iterations: int = 1,
        search_evaluations: int = 25,
    ) -> None:
        check_choice(self, "formula", formula, FORMULAS)
        check_choice(self, "line_search", line_search, SEARCHES)
        check_least(self, "iterations", iterations, 1)
        check_least(self, "search_evaluations", search_evaluations, 1)
        defaults = {
            "lr": lr,
            "formula": formula,
            "line_search": line_search,
            "iterations": iterations,
            "search_evaluations": search_evaluations,
        }
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        """Search along ``iterations`` directions; return the loss before the first.

        Parameters
        ----------
        closure
            Clears the gradients, computes the loss, calls ``backward()`` and returns the loss.
        """
        closure = self._closure(closure)
        here = first = self._evaluate(closure, 0.0)
        self._check_finite(here.value, here.gradient)
        for _ in range(self.param_groups[0]["iterations"]):
            if not here.gradient.any():
                break
            here = self._iterate(closure, here)
            if here.length == 0.0:
                break
        return first.value

    def _evaluate(
        self, closure: Callable[[], Any], length: float, direction: Tensor | None = None
    ) -> Point:
        with torch.enable_grad():
            loss = as_float(closure())
        self._count()
        gradient = self._gradient()
        slope = 0.0 if direction is None else float(gradient @ direction)
        return Point(length, loss, slope, gradient)

    def _iterate(self, closure: Callable[[], Any], here: Point) -> Point:
        """Choose a direction, search along it, move there."""
        memory, place = self.memory, self._place()
        direction = self._direction(here.gradient)
        slope = float(here.gradient @ direction)
        if not slope < 0:  # does not descend: begin again
            memory["since"], direction = 1, -here.gradient
            slope = float(here.gradient @ direction)

        def ray(length: float) -> Point:
            self._move_to(torch.add(place, direction, alpha=length))
            return self._evaluate(closure, length, direction)

        found = self._search(ray, here._replace(length=0.0, slope=slope))
        if found.length == 0.0:  # nothing lower along it
            memory["since"] = 0
        else:
            memory["length"], memory["slope"] = found.length, slope
        self._move_to(torch.add(place, direction, alpha=found.length))
        memory["gradient"], memory["direction"] = here.gradient, direction
        return found

    def _direction(self, gradient: Tensor) -> Tensor:
        """Return -g + beta d, and count the iterations since the last restart."""
        memory = self.memory
        since = memory.get("since", 0)
        if since == 0 or since >= gradient.numel():
            memory["since"] = 1
            return -gradient
        memory["since"] = since + 1
        return memory["direction"] * self._beta(gradient, memory["gradient"]) - gradient

    def _beta(self, gradient: Tensor, before: Tensor) -> Tensor:
        formula = self.param_groups[0]["formula"]
        if formula == "steepest":
            return gradient.new_zeros(())
        if formula == "fletcher_reeves":
            return gradient @ gradient / (before @ before)
        return (gradient @ (gradient - before) / (before @ before)).clamp_min(0.0)

    def _search(self, ray: Ray, start: Point) -> Point:
        group, memory = self.param_groups[0], self.memory
        if "length" in memory:  # expect the same first-order fall as in the last step
            trial = memory["length"] * min(memory["slope"] / start.slope, 100.0)
        else:
            trial = (group["lr"] or 1.0) * min(1.0, 1.0 / float(start.gradient.abs().sum()))
        search = strong_wolfe if group["line_search"] == "strong_wolfe" else exact_line_search
        return search(ray, start, trial, evaluations=group["search_evaluations"])
