"""Linear readouts of a reservoir: ridge regression in closed form, or recursive least squares.

ridge   W = (Z^T Z + alpha I)^-1 Z^T Y
RLS     k = P z / (f + z^T P z),  W += k (y - W^T z)^T,  P = (P - k z^T P) / f,  from P = I / alpha

With f = 1 both end at the same weights; f < 1 forgets. Shapes: R rows, F features, O outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.linalg import cho_factor, cho_solve
from torch import Tensor

__all__ = ["RidgeSums", "recursive_least_squares", "ridge"]


@dataclass
class RidgeSums:
    """Z^T Z, (F, F), and Z^T Y, (F, O), added up over blocks of rows."""

    gram: np.ndarray
    cross: np.ndarray

    @classmethod
    def of(cls, parts: Sequence[Tensor], y: Tensor) -> RidgeSums:
        """Return the sums of some rows, whose features come in parts, (R, F) together.

        On a CPU numpy needs half of the products of a part with itself.
        """
        sides = [part.numpy() if part.device.type == "cpu" else part for part in parts]
        wanted = y.numpy() if y.device.type == "cpu" else y
        found = [[_between(a, b) for b in sides[i:]] for i, a in enumerate(sides)]
        below = [[found[j][i - j].T for j in range(i)] for i in range(len(sides))]
        gram = np.block([[*left, *right] for left, right in zip(below, found, strict=True)])
        return cls(gram, np.concatenate([_between(a, wanted) for a in sides]))

    def __add__(self, other: RidgeSums) -> RidgeSums:
        """Add more rows."""
        return RidgeSums(self.gram + other.gram, self.cross + other.cross)


def _between(a: Any, b: Any) -> np.ndarray:
    """Return a^T b; products are quicker with the narrow side on the left."""
    if b.shape[1] < a.shape[1]:
        return _between(b, a).T
    found = a.T @ b
    return found if isinstance(found, np.ndarray) else found.cpu().numpy()


def ridge(sums: RidgeSums, alpha: float | np.ndarray) -> np.ndarray:
    """Return the weights, (F, O); of least norm where alpha is 0 and they are not unique.

    ``alpha`` may be one for each feature, (F,).
    """
    square = sums.gram.copy()
    square[np.diag_indices_from(square)] += alpha
    try:
        return cho_solve(cho_factor(square), sums.cross)
    except np.linalg.LinAlgError:
        return np.linalg.lstsq(square, sums.cross, rcond=1e-14)[0]


def recursive_least_squares(
    z: Tensor, y: Tensor, weights: Tensor, spread: Tensor, forget: float
) -> tuple[Tensor, Tensor]:
    """Return weights (F, O) and P (F, F) after rows z (R, F) with targets y (R, O), in order."""
    weights, spread = weights.clone(), spread.clone()
    for row, target in zip(z, y, strict=True):
        moved = spread @ row
        gain = moved / (forget + row @ moved)
        weights += torch.outer(gain, target - row @ weights)
        spread = (spread - torch.outer(gain, moved)) / forget
        spread = 0.5 * (spread + spread.T)
    return weights, spread
