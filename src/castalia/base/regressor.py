"""The task of predicting numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin

from castalia.base.targets import NumberCodec, TargetCodec

__all__ = ["Regressor"]


@dataclass(kw_only=True, eq=False, repr=False)
class Regressor(RegressorMixin):
    """One number a row, or several."""

    codec: ClassVar[TargetCodec] = NumberCodec()

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted number(s) of each row."""
        return self.codec.decode(self, self._outputs(X))  # type: ignore[attr-defined,no-any-return]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags
