"""Adapters: how the X of a kind of data becomes rows a network can take."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from scipy.sparse import issparse
from torch import Tensor

from castalia.data.adapter_base import Adapter
from castalia.data.batches import DiskRows, SparseRows, TensorRows
from castalia.data.stream import DiskMatrix
from castalia.data.tables.dataset import Dataset
from castalia.data.tables.table_encoder import TableEncoder
from castalia.protocols import Rows
from castalia.utils.sparse_blocks import dense_blocks

__all__ = ["TableAdapter"]

BLOCK = 65_536  # rows encoded at a time when predicting: few calls, little memory


class TableAdapter(Adapter):
    """Tables: numbers standardised, missing values flagged, categories as codes.

    Examples
    --------
    >>> adapter = TableAdapter().fit(np.array([[1.0], [3.0]]))
    >>> adapter.rows(np.array([[3.0]]), np.float32).take(torch.tensor([0]))
    tensor([[1.]])
    """

    def __init__(self, encoder: TableEncoder | None = None) -> None:
        self.encoder = encoder if encoder is not None else TableEncoder()

    @property
    def inputs(self) -> int:  # type: ignore[override]
        """Width of an encoded row."""
        return self.encoder.inputs

    @property
    def categories(self) -> tuple[int, ...]:  # type: ignore[override]
        """Sizes of the categorical columns."""
        return self.encoder.categories

    @property
    def shape(self) -> torch.Size:
        """Shape of one row."""
        return torch.Size([self.inputs])

    def tabular(self, X: Any) -> bool:
        """Whether X is to be checked as a table; one that also reads images says when it is."""
        return True

    def fit(self, X: Any, sample_weight: np.ndarray | None = None) -> TableAdapter:
        """Learn columns, scales and categories."""
        self.encoder.fit(X, sample_weight)
        return self

    def rows(self, X: Any, dtype: Any) -> Rows:
        """Return the encoded rows: a tensor, a file for data that is streamed, or sparse rows."""
        if issparse(X):
            return SparseRows(
                X, encode=partial(self.encoder.encode, dtype=dtype), width=self.inputs
            )
        if isinstance(X, Dataset) and X.streaming:
            return DiskRows(DiskMatrix.write(X, self.encoder, dtype))
        return TensorRows(torch.from_numpy(self.encoder.encode(X, dtype)))

    def matrix(self, X: Any) -> np.ndarray:
        """Encode rows for models that know no categories: each gets a column of 0 and 1.

        The columns of a value that is missing or was not seen are all 0.
        """
        rows = self.encoder.encode(X, np.float64)
        first = rows.shape[1] - len(self.categories)
        parts = [rows[:, :first]]
        for place, size in enumerate(self.categories, start=first):
            parts.append((rows[:, place, None] == np.arange(1, size)).astype(np.float64))
        return np.concatenate(parts, axis=1)

    def blocks(self, X: Any, dtype: Any) -> Iterator[Tensor]:
        """Encode block by block, for prediction."""
        if issparse(X):
            parts: Iterator[Any] = dense_blocks(X)
        elif isinstance(X, np.ndarray):
            parts = (X[start : start + BLOCK] for start in range(0, len(X), BLOCK))
        elif isinstance(X, Dataset) and X.streaming:
            parts = X.chunks()
        else:
            yield from torch.from_numpy(self.encoder.encode(X, dtype)).split(BLOCK)
            return
        for part in parts:
            yield torch.from_numpy(self.encoder.encode(part, dtype))

    def state(self) -> dict[str, Any]:
        """Return what saving needs."""
        return self.encoder.state()

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> TableAdapter:
        """Return an adapter from its saved state."""
        return cls(TableEncoder.from_state(state))
