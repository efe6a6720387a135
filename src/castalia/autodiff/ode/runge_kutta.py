"""Runge–Kutta steps from a tableau.

The stages are the rows of one matrix K, so that y + h sum_j a_ij k_j is a single product of K with
a row of the tableau. Shapes: N size of the state, S stages.
"""

from __future__ import annotations

import torch
from torch import Tensor

from castalia.autodiff.ode.field import Field
from castalia.autodiff.ode.ode_step import Step
from castalia.autodiff.ode.tableaux import Tableau

__all__ = ["RungeKutta"]


class WrittenStages:
    """The stages in one buffer, written in place: nothing records gradients."""

    def __init__(self, n_stages: int, like: Tensor) -> None:
        self.matrix = like.new_empty(n_stages, len(like))  # (S, N)
        self.slots = self.matrix.unbind()
        self.parts = [self.matrix[:i].T for i in range(n_stages + 1)]

    def put(self, i: int, k: Tensor) -> None:
        self.slots[i].copy_(k)

    def columns(self, i: int) -> Tensor:  # (N, i)
        return self.parts[i]


class RecordedStages:
    """The stages as separate tensors, stacked when needed, so that autograd can follow."""

    def __init__(self) -> None:
        self.rows: list[Tensor] = []

    def put(self, i: int, k: Tensor) -> None:
        self.rows.append(k)

    def columns(self, i: int) -> Tensor:  # (N, i)
        return torch.stack(self.rows[:i], dim=1)

    @property
    def matrix(self) -> Tensor:  # (S, N)
        return torch.stack(self.rows)


class RungeKutta:
    """An explicit Runge–Kutta method on flat vectors.

    Parameters
    ----------
    tableau
        The coefficients.
    field
        The right-hand side.
    like
        A state, for its type and device.
    keep
        Whether steps are kept for later, so that each needs a buffer of its own.
    """

    def __init__(self, tableau: Tableau, field: Field, like: Tensor, keep: bool = False) -> None:
        self.tableau, self.field, self.keep = tableau, field, keep
        self.c = like.new_tensor(tableau.c)
        self.a = [like.new_tensor(row) for row in tableau.a]
        self.error = like.new_tensor(tableau.error) if tableau.error else None
        self.dense = like.new_tensor(tableau.dense) if tableau.dense else None
        self._buffer: WrittenStages | None = None

    def restart(self) -> None:
        """A Runge–Kutta step depends on none before it."""

    def step(self, t: float, y: Tensor, f: Tensor, t1: float) -> Step:
        """Go from (t, y), where the derivative is f, to t1."""
        h = t1 - t
        stages = self._stages(y)
        stages.put(0, f)
        times = self.c.mul(h).add_(t).unbind()
        last = len(self.c) - 1
        for i, row in enumerate(self.a, start=1):
            end = torch.addmv(y, stages.columns(i), row, alpha=h)
            if i <= last:
                k = self.field(times[i], end)
                stages.put(i, k)
        step = Step(t, t1, y, end, f)
        if self.tableau.first_same_as_last:
            step.f1 = k
        if self.error is not None:
            step.stages, step.dense = stages.matrix, self.dense
            step.error = torch.mv(step.stages.detach().T, self.error).mul_(h)
        return step

    def _stages(self, like: Tensor) -> WrittenStages | RecordedStages:
        if torch.is_grad_enabled():
            return RecordedStages()
        if self._buffer is None or self.keep:
            self._buffer = WrittenStages(len(self.c), like)
        return self._buffer
