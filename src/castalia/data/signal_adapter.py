"""The adapter of signals: one length, one number of channels, channels brought to one scale."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from castalia.data.adapter_base import Adapter
from castalia.data.batches import TensorRows
from castalia.errors import InvalidData
from castalia.protocols import Rows

__all__ = ["SignalAdapter"]

BLOCK = 1 << 20  # numbers of a block when predicting


class SignalAdapter(Adapter):
    """Signals (n, C, T), or (n, T) of one channel; each channel to mean 0 and deviation 1.

    Examples
    --------
    >>> adapter = SignalAdapter().fit(np.arange(12.0).reshape(2, 2, 3))
    >>> adapter.inputs, adapter.extra
    (2, {'size': [3]})
    """

    def __init__(self) -> None:
        self.inputs = self.length = 0
        self.mean = self.deviation = np.zeros(0)

    @property
    def extra(self) -> Mapping[str, Any]:
        """What a network needs beyond the number of channels."""
        return {"size": [self.length]}

    @property
    def shape(self) -> torch.Size:
        """Shape of one row."""
        return torch.Size([self.inputs, self.length])

    def check(self, X: Any, owner: str) -> np.ndarray:
        """Return X as an array (n, C, T) of finite numbers; after ``fit``, of the same C and T."""
        try:
            array = X.detach().cpu().numpy() if isinstance(X, Tensor) else np.asarray(X)
        except ValueError as error:
            raise InvalidData(
                f"{owner}: signals must all have the same shape, (T,) or (C, T); {error}. Cut them "
                "to one length."
            ) from error
        if array.ndim not in (2, 3) or array.dtype.kind not in "buif" or not array.size:
            raise InvalidData(
                f"{owner}: signals must be numbers (n, T), or (n, C, T) of several channels; got "
                f"an array of shape {array.shape} and dtype {array.dtype}."
            )
        array = array[:, None] if array.ndim == 2 else array
        array = array.astype(np.float64 if array.dtype == np.float64 else np.float32)
        bad = ~np.isfinite(array).all(axis=(1, 2))
        if bad.any():
            raise InvalidData(
                f"{owner}: signals must hold no NaN or infinity; {bad.sum():,} of {len(bad):,} do, "
                f"first signal {int(bad.argmax())}."
            )
        if self.length and array.shape[1:] != self.shape:
            raise InvalidData(
                f"{owner}: signals must have (C, T) = {tuple(self.shape)}, as in fit; got "
                f"{array.shape[1:]}."
            )
        return array

    def fit(self, X: np.ndarray, sample_weight: np.ndarray | None = None) -> SignalAdapter:
        """Learn length, channels and scales."""
        _, self.inputs, self.length = X.shape
        weight = np.ones(len(X)) if sample_weight is None else sample_weight
        share = weight / weight.sum()
        self.mean = np.einsum("n,nct->c", share, X, dtype=np.float64) / self.length
        square = np.square(X - self.mean[:, None])
        deviation = np.sqrt(np.einsum("n,nct->c", share, square) / self.length)
        self.deviation = np.where(deviation > 0, deviation, 1.0)
        return self

    def rows(self, X: np.ndarray, dtype: Any) -> Rows:
        """Return the signals as rows of a training."""
        return TensorRows(self._scaled(X, dtype))

    def blocks(self, X: np.ndarray, dtype: Any) -> Iterator[Tensor]:
        """Yield scaled signals block by block, for prediction."""
        step = max(1, BLOCK // self.shape.numel())
        for start in range(0, len(X), step):
            yield self._scaled(X[start : start + step], dtype)

    def _scaled(self, X: np.ndarray, dtype: Any) -> Tensor:
        scaled = (X - self.mean[:, None]) / self.deviation[:, None]
        return torch.from_numpy(scaled.astype(dtype))
