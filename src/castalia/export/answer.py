"""The last part of an exported graph: from encoded rows to answers."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier
from torch import nn

__all__ = ["Answer"]


class Answer(nn.Module):
    """The last part of a graph: from encoded rows to answers.

    ``outputs`` names what ``forward`` returns, and ``methods`` what of the model answers the same;
    the output ``prediction`` of a classifier is the number of the class.
    """

    outputs: tuple[str, ...] = ("prediction",)
    methods: tuple[str, ...] = ("predict",)

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    @property
    def classes(self) -> np.ndarray | None:
        """What the numbers of ``prediction`` stand for; None where they are the answer."""
        single = is_classifier(self.model) and not getattr(self.model, "multilabel_", False)
        return np.asarray(self.model.classes_) if single else None

    def expected(self, X: Any) -> list[np.ndarray]:
        """Return what the model itself answers."""
        return [np.asarray(getattr(self.model, name)(X)) for name in self.methods]
