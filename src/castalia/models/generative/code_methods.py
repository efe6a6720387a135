"""What models with a code share: rows to codes, codes to rows, and walks between codes."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from castalia.base.input_checks import n_rows
from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.objectives import RowLikelihood

__all__ = ["Codes"]

ROWS = 1024  # codes that are decoded together


class Codes(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """``transform``, ``inverse_transform`` and what follows from them.

    The network has ``encode(x)`` and ``decode(z)``; ``_row_likelihood()`` makes rows of outputs.
    """

    def _row_likelihood(self) -> RowLikelihood:
        raise NotImplementedError

    def _decoded(self, z: Tensor) -> Tensor:
        """Return the outputs of codes."""
        return self.module_.decode(z)  # type: ignore[attr-defined]

    @property
    def _n_features_out(self) -> int:
        return self.code_  # type: ignore[attr-defined]

    def transform(self, X: Any) -> np.ndarray:
        """Return the code of each row, (n, code)."""
        each: Any = self._each  # type: ignore[attr-defined]
        found = [part.numpy() for part in each(X, lambda x: self.module_.encode(x))]  # type: ignore[attr-defined]
        return np.concatenate(found)

    def inverse_transform(self, Z: Any) -> Any:
        """Return the rows of codes (n, code), in the units and the form of X."""
        check_is_fitted(self, "module_")
        z: Tensor = self._device_tensor(Z)  # type: ignore[attr-defined]
        if z.ndim != 2 or z.shape[1] != self._n_features_out:
            raise ShapeMismatch(
                f"{type(self).__name__}.inverse_transform: codes must have shape "
                f"(n, {self._n_features_out}); got {tuple(z.shape)}."
            )
        return self._values(self._rows_of(z))  # type: ignore[attr-defined]

    @torch.inference_mode()
    def _rows_of(self, z: Tensor) -> Tensor:
        """Return the likeliest encoded rows of codes, on the CPU."""
        self.module_.eval()  # type: ignore[attr-defined]
        likelihood = self._row_likelihood()
        return torch.cat([likelihood.mode(self._decoded(part)).cpu() for part in z.split(ROWS)])

    def reconstruct(self, X: Any) -> Any:
        """Return what comes back of each row: ``inverse_transform(transform(X))``."""
        return self.inverse_transform(self.transform(X))

    def interpolate(self, a: Any, b: Any, steps: int = 8) -> Any:
        """Return rows whose codes lie evenly on the line from a's to b's.

        Parameters
        ----------
        a, b
            One row each, with a leading axis of length 1 or without.
        steps
            How many rows, both ends included.
        """
        first, last = (self.transform(_one(self, row)) for row in (a, b))
        share = np.linspace(0, 1, _whole(self, "steps", steps))[:, None]
        return self.inverse_transform((1 - share) * first + share * last)

    def traverse(self, dimension: int, *, row: Any = None, low: float = -2, high: float = 2,
                 steps: int = 8) -> Any:  # fmt: skip
        """Return rows whose codes differ in one dimension only.

        Parameters
        ----------
        dimension
            Which one.
        row
            Row whose code gives the other dimensions; None: all 0.
        low, high
            Where the dimension begins and ends.
        steps
            How many rows.
        """
        check_is_fitted(self, "module_")
        width = self._n_features_out
        if not -width <= dimension < width:
            raise InvalidParameter(
                f"{type(self).__name__}.traverse: `dimension` must be below {width}; got "
                f"{dimension}."
            )
        start = np.zeros((1, width)) if row is None else self.transform(_one(self, row))
        codes = np.repeat(start, _whole(self, "steps", steps), axis=0)
        codes[:, dimension] = np.linspace(low, high, steps)
        return self.inverse_transform(codes)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # codes have the network's format
        return tags


def _one(owner: Any, row: Any) -> Any:
    """Return one row with a leading axis."""
    wanted = len(owner.adapter_.shape) + (0 if owner.adapter_.shape[0] == 1 else 1)
    if isinstance(row, list | tuple | np.ndarray) and np.ndim(row) < max(2, wanted):
        row = np.asarray(row)[None]
    if n_rows(row) != 1:
        raise ShapeMismatch(f"{type(owner).__name__}: one row is wanted; got {n_rows(row)}.")
    return row


def _whole(owner: Any, name: str, value: Any) -> int:
    if not isinstance(value, int) or value < 2:
        raise InvalidParameter(
            f"{type(owner).__name__}: `{name}` must be a whole number of at least 2; got {value!r}."
        )
    return value
