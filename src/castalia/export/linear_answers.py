"""Answers of linear models: numbers, scores, probabilities."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from castalia.export.answer import Answer

__all__ = ["LinearAnswer", "OddsAnswer", "ScoreAnswer"]


class LinearAnswer(Answer):
    """W x + b of the rows, or of functions of them."""

    weight: Tensor
    bias: Tensor

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.register_buffer("weight", torch.tensor(model.coef_, dtype=torch.float64))
        self.register_buffer("bias", torch.tensor(model.intercept_, dtype=torch.float64))

    def values(self, x: Tensor) -> Tensor:
        """Return W x + b."""
        return self.model._expanded(x) @ self.weight.mT + self.bias

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return the numbers, (N,) or (N, T)."""
        if self.weight.ndim == 2:
            return (self.values(x),)
        return (self.model._expanded(x) @ self.weight + self.bias,)


class ScoreAnswer(LinearAnswer):
    """Scores and classes by hyperplanes."""

    outputs = ("score", "prediction")
    methods = ("decision_function", "predict")

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the score of the second of two classes, or of each, and the class."""
        found = self.values(x)
        return _scored(found)


class OddsAnswer(LinearAnswer):
    """Probabilities and classes of logistic regression."""

    outputs = ("probability", "prediction")
    methods = ("predict_proba", "predict")

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the probability of each class and the class."""
        found = self.values(x)
        if found.shape[1] > 1:
            return found.softmax(dim=1), found.argmax(dim=1)
        both = torch.cat([torch.sigmoid(-found), torch.sigmoid(found)], dim=1)
        return both, (found[:, 0] > 0).long()


def _scored(found: Tensor) -> tuple[Tensor, Tensor]:
    if found.shape[1] == 1:
        return found[:, 0], (found[:, 0] > 0).long()
    return found, found.argmax(dim=1)
