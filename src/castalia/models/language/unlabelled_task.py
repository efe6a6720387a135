"""The task of learning from texts alone."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from castalia.base import Target

__all__ = ["Unlabelled"]


class Unlabelled:
    """No targets: what is learnt is in the texts."""

    _wants_validation_outputs: ClassVar[bool] = False
    _wants_target: ClassVar[bool] = False

    def _check_target(self, X: Any, y: Any) -> np.ndarray:
        return np.zeros(len(X), dtype=np.int64)

    def _encode_target(self, y: np.ndarray, weight: np.ndarray | None) -> Target:
        return Target(torch.from_numpy(y), 0, weight)

    def _reencode_target(self, y: np.ndarray) -> Target:
        return Target(torch.from_numpy(y), 0, None)

    def _after_fit(self, outputs: Tensor | None, targets: Tensor | None) -> None:
        """Nothing to learn from the validation rows."""
