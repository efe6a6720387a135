"""Answers of models that keep axes, centres or rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from castalia.export.answer import Answer
from castalia.models.kernel.kernel_matrix import cross_matrix

__all__ = ["CentreAnswer", "KernelAnswer", "KernelClassAnswer", "ProjectionAnswer"]


class ProjectionAnswer(Answer):
    """Coordinates along the principal axes."""

    outputs = ("code",)
    methods = ("transform",)
    mean: Tensor
    axes: Tensor

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        scale = np.clip(np.asarray(model._deviation(), np.float64), 1e-12, None)
        axes = np.asarray(model.components_, np.float64) / scale[:, None]
        self.register_buffer("mean", torch.tensor(model.mean_, dtype=torch.float64))
        self.register_buffer("axes", torch.from_numpy(axes))

    def forward(self, x: Tensor) -> tuple[Tensor]:
        """Return the codes, (N, K)."""
        return ((x - self.mean) @ self.axes.mT,)


class CentreAnswer(Answer):
    """Distances from the centres, and the nearest."""

    outputs = ("distance", "prediction")
    methods = ("transform", "predict")
    centres: Tensor

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        centres = torch.as_tensor(np.asarray(model.cluster_centers_, np.float64))
        self.register_buffer("centres", centres)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the distances, (N, K), and the nearest centre's number."""
        far = (x[:, None] - self.centres).square().sum(dim=2).sqrt()
        return far, far.argmin(dim=1)


class KernelAnswer(Answer):
    """f(x) = sum_i a_i k(x_i, x) over the kept rows."""

    def values(self, x: Tensor) -> Tensor:
        """Return f, (N, T)."""
        model = self.model
        kept, dual = (torch.as_tensor(np.asarray(a)) for a in (model.X_train_, model.dual_))
        return cross_matrix(model.kernel_, model._theta(), x, kept) @ dual

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return the numbers, (N,) or (N, T)."""
        found = self.values(x)
        return (found if self.model.multi_ else found[:, 0],)


class KernelClassAnswer(KernelAnswer):
    """Scores and classes by f(x) + b."""

    outputs = ("score", "prediction")
    methods = ("decision_function", "predict")

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return the score of the second of two classes, or of each, and the class."""
        found = self.values(x) + torch.as_tensor(np.asarray(self.model.intercept_))
        if found.shape[1] == 1:
            return found[:, 0], (found[:, 0] > 0).long()
        return found, found.argmax(dim=1)
