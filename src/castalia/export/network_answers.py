"""Answers that a network gives: classes, numbers, codes, masks."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from castalia.export.answer import Answer

__all__ = ["ClassAnswer", "CodeAnswer", "MaskAnswer", "MeanAnswer", "NetworkAnswer", "NumberAnswer"]


class NetworkAnswer(Answer):
    """Base of answers that a network gives."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.net = model.module_

    def raw(self, x: Tensor) -> Any:
        """Return the network's outputs."""
        return self.model.codec.outputs(self.model, x)


class ClassAnswer(NetworkAnswer):
    """Probabilities and classes."""

    outputs = ("probability", "prediction")
    methods = ("predict_proba", "predict")

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the probability of each class, (N, K), and the number of the first."""
        found = self.raw(x)
        chosen = (found > 0).long() if self.model.multilabel_ else found.argmax(dim=1)
        return self.model.codec.probability(self.model, found), chosen


class NumberAnswer(NetworkAnswer):
    """Numbers in the units of y."""

    scale: Tensor
    mean: Tensor

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.register_buffer("scale", torch.tensor(model.target_scale_, dtype=torch.float64))
        self.register_buffer("mean", torch.tensor(model.target_mean_, dtype=torch.float64))

    def forward(self, x: Tensor) -> tuple[Tensor]:
        """Return the numbers, (N,) or (N, T)."""
        values = self.raw(x).double() * self.scale + self.mean
        return (values[:, 0] if self.model.one_target_ else values,)


class MeanAnswer(NumberAnswer):
    """The mean of a distribution, in the units of y."""

    def raw(self, x: Tensor) -> Any:
        """Return the mean of each row, in scaled units."""
        return self.model._likelihood().distribution(super().raw(x).double()).mean


class CodeAnswer(NetworkAnswer):
    """The code of each row."""

    outputs = ("code",)
    methods = ("transform",)

    def forward(self, x: Tensor) -> tuple[Tensor]:
        """Return the codes, (N, K)."""
        return (self.net.encode(x),)


class MaskAnswer(NetworkAnswer):
    """A class at every pixel of images that have the size of the network."""

    outputs = ("probability", "prediction")
    methods = ("predict_proba", "predict")

    @property
    def classes(self) -> np.ndarray:
        """The values of a mask."""
        return np.asarray(self.model.classes_)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return probabilities, (N, H, W, K), and class numbers, (N, H, W)."""
        found = self.raw(x)
        return found.softmax(dim=1).movedim(1, -1), found.argmax(dim=1)
