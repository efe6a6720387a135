"""What Newton, Gauss-Newton and Hessian-free optimizers share: a model here, the loss elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor

from castalia.errors import InvalidParameter
from castalia.optim.quadratic_models import (
    GaussNewtonModel,
    HessianModel,
    build_model,
    loss_of_answer,
)
from castalia.optim.vector import VectorOptimizer

__all__ = ["CurvatureOptimizer"]

HALVINGS = 30
DECREASE = 1e-4  # share of the promised first-order fall that a step must bring


class CurvatureOptimizer(VectorOptimizer):
    """An optimizer that models the loss by a quadratic and tries the model's steps."""

    closure: ClassVar[str] = "either"

    def _model(
        self, closure: Callable[[], Any], kind: str
    ) -> tuple[HessianModel | GaussNewtonModel, float]:
        """Model the loss here; return the model and the loss."""
        model = build_model(self._name, closure, self.parameters, kind)
        self._count(2 if isinstance(model, GaussNewtonModel) else 1)  # the gradient; and J^T
        loss = float(model.loss)
        self._check_finite(loss, model.gradient)
        self._publish(model.gradient)
        return model, loss

    def _loss_at(self, closure: Callable[[], Any], place: Tensor) -> float:
        """Move there and return the loss, without gradients."""
        self._move_to(place)
        self._count()
        return float(loss_of_answer(self._name, closure()))

    def _backtrack(
        self,
        closure: Callable[[], Any],
        place: Tensor,
        direction: Tensor,
        loss: float,
        slope: float,
        length: float,
        there: float | None = None,
    ) -> tuple[float, float]:
        """Halve a step until the loss falls enough; return length and loss, (0, loss) if never.

        ``there`` is the loss at the whole step, where it is known.
        """
        for _ in range(HALVINGS):
            end = torch.add(place, direction, alpha=length)
            found = self._loss_at(closure, end) if there is None else there
            if found <= loss + DECREASE * length * slope:
                self._move_to(end)
                return length, found
            length, there = 0.5 * length, None
        self._move_to(place)
        return 0.0, loss

    def _check_size(self, limit: int) -> None:
        n = sum(p.numel() for p in self.parameters)
        if n > limit:
            raise InvalidParameter(
                f"{self._name}: there must be at most {limit:,} parameters, because its matrix has "
                f"a row and a column for each; got {n:,}. Use HessianFree, which needs products "
                "only, or raise `limit`."
            )
