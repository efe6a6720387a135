"""Linear multistep methods of Adams: the derivatives of earlier steps are used again.

Bashforth: y_{n+1} = y_n + h sum_j b_j f_{n-j}, one evaluation a step.
Moulton, as a corrector: the predicted end is evaluated, and its derivative joins the sum with the
weights of the implicit formula: two evaluations a step, a smaller error and more stability.
The first steps, and those after a change of h, are Runge–Kutta steps of order 4.
"""

from __future__ import annotations

import math
from collections import deque

import torch
from torch import Tensor

from castalia.autodiff.ode.field import Field
from castalia.autodiff.ode.ode_step import Step
from castalia.autodiff.ode.runge_kutta import RungeKutta
from castalia.autodiff.ode.tableaux import ADAMS_BASHFORTH, ADAMS_MOULTON, TABLEAUX

__all__ = ["Adams"]


class Adams:
    """Adams–Bashforth, or Adams–Moulton when ``correct`` is set, on flat vectors.

    Parameters
    ----------
    order
        From 1 to 4; as many derivatives enter a step.
    field
        The right-hand side.
    like
        A state, for its type and device.
    correct
        Whether the implicit formula corrects the step once.
    """

    def __init__(self, order: int, field: Field, like: Tensor, correct: bool = False) -> None:
        self.order, self.field = order, field
        self.start = RungeKutta(TABLEAUX["rk4"], field, like)
        self.predictor = like.new_tensor(ADAMS_BASHFORTH[order])
        self.corrector = like.new_tensor(ADAMS_MOULTON[order]) if correct else None
        self.past: deque[Tensor] = deque(maxlen=order)  # newest first
        self.h = math.nan

    def restart(self) -> None:
        """Forget the earlier derivatives: another trajectory begins."""
        self.past.clear()

    def step(self, t: float, y: Tensor, f: Tensor, t1: float) -> Step:
        """Go from (t, y), where the derivative is f, to t1."""
        h = t1 - t
        if not math.isclose(h, self.h, rel_tol=1e-9):
            self.past.clear()
            self.h = h
        self.past.appendleft(f)
        if len(self.past) < self.order:
            return self.start.step(t, y, f, t1)
        end = self._combine(y, list(self.past), self.predictor, h)
        if self.corrector is not None:
            new = self.field.at(t1, end)
            end = self._combine(y, [new, *self.past][: self.order], self.corrector, h)
        return Step(t, t1, y, end, f)

    @staticmethod
    def _combine(y: Tensor, slopes: list[Tensor], weights: Tensor, h: float) -> Tensor:
        return torch.addmv(y, torch.stack(slopes, dim=1), weights, alpha=h)
