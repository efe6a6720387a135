"""The mean of what the members of an ensemble answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from sklearn.base import is_classifier
from torch import Tensor, nn

from castalia.export.answer import Answer

__all__ = ["VoteAnswer"]


class VoteAnswer(Answer):
    """The mean of what members say."""

    def __init__(self, model: Any, members: Sequence[Any], graphs: Sequence[nn.Module]) -> None:
        super().__init__(model)
        self.members = nn.ModuleList(graphs)
        if is_classifier(model):
            self.outputs = ("probability", "prediction")
            self.methods = ("predict_proba", "predict")
            self.shares = [_columns(model.classes_, member.classes_) for member in members]

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return the mean probability and its class, or the mean number."""
        said = [member(x)[0].double() for member in self.members]
        if len(self.outputs) == 1:
            return (torch.stack(said).mean(dim=0),)
        whole = [found @ share for found, share in zip(said, self.shares, strict=True)]
        mean = torch.stack(whole).mean(dim=0)
        return mean, mean.argmax(dim=1)


def _columns(classes: np.ndarray, own: np.ndarray) -> Tensor:
    """Return the matrix that puts a member's classes where the ensemble has them."""
    return torch.from_numpy((own[:, None] == classes[None]).astype(np.float64))
