"""Features that are mostly zero, such as words of a text: only the others are kept.

Z = X W with X sparse; dL/dW = X^T dL/dZ. Dropout draws for the values that are there: a dropped
zero is a zero. Shapes: N nodes, D features, V values, O outputs.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.nn.graph.sparse_products import csr_tensor, exactly

__all__ = ["SparseFeatures", "dense_features", "dropped", "linear"]


class _Transposes(Protocol):
    values: Tensor

    def matrix(self) -> Tensor:
        """Return X as torch's."""

    def transpose(self) -> Tensor:
        """Return X^T as torch's."""


class _Product(torch.autograd.Function):
    """X W; the gradient goes to W only."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, x: _Transposes) -> Tensor:
        ctx.x = x
        return exactly(x.matrix(), weight)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return exactly(ctx.x.transpose(), grad.contiguous()), None


class SparseFeatures:
    """Sparse matrix (N, D) that can be multiplied by weights.

    Parameters
    ----------
    pointer
        Where the values of each node begin, (N + 1,).
    columns, values
        Of the values that are not zero, (V,).
    width
        Number of features D.

    Examples
    --------
    >>> x = SparseFeatures(torch.tensor([0, 1, 1]), torch.tensor([2]), torch.tensor([5.0]), 3)
    >>> x @ torch.eye(3)
    tensor([[0., 0., 5.],
            [0., 0., 0.]])
    """

    def __init__(self, pointer: Tensor, columns: Tensor, values: Tensor, width: int) -> None:
        self.pointer, self.columns, self.values, self.width = pointer, columns, values, width

    @property
    def shape(self) -> torch.Size:
        """Nodes and features."""
        return torch.Size([len(self.pointer) - 1, self.width])

    @property
    def dtype(self) -> torch.dtype:
        """Format of the values."""
        return self.values.dtype

    @property
    def device(self) -> torch.device:
        """Where the values are."""
        return self.values.device

    @property
    def nbytes(self) -> int:
        """Memory of all parts."""
        return self.pointer.nbytes + self.columns.nbytes + self.values.nbytes

    def __len__(self) -> int:
        return len(self.pointer) - 1

    def __matmul__(self, weight: Tensor) -> Tensor:  # (D, O)
        if weight.dtype != self.dtype:
            weight = weight.to(self.dtype)
        found: Tensor = _Product.apply(weight.contiguous(), self)
        return found  # (N, O)

    def __getitem__(self, nodes: Tensor) -> Tensor:
        """Return the features of some nodes with their zeros, (n, D)."""
        first, counts = self.pointer[nodes], self.pointer.diff()[nodes]
        row = torch.arange(len(nodes), device=nodes.device).repeat_interleave(counts)
        ends = counts.cumsum(0)
        place = torch.arange(len(row), device=nodes.device) + (first - ends + counts)[row]
        found = torch.zeros(len(nodes), self.width, dtype=self.dtype, device=self.device)
        return found.index_put((row, self.columns[place]), self.values[place])

    def dense(self) -> Tensor:
        """Return all features with their zeros, (N, D)."""
        return self[torch.arange(len(self), device=self.device)]

    def with_values(self, values: Tensor) -> SparseFeatures:
        """Return other values in the same places."""
        made = SparseFeatures(self.pointer, self.columns, values, self.width)
        made.__dict__["_turned"] = self._turned  # found once
        return made

    def to(self, device: Any) -> SparseFeatures:
        """Return the same features on a device."""
        pointer, columns = self.pointer.to(device), self.columns.to(device)
        return SparseFeatures(pointer, columns, self.values.to(device), self.width)

    @cached_property
    def _turned(self) -> tuple[Tensor, Tensor, Tensor]:
        """Pointer, rows and order of the values, sorted by column."""
        order = torch.argsort(self.columns, stable=True)
        counts = torch.bincount(self.columns, minlength=self.width)
        row = torch.arange(len(self), device=self.device).repeat_interleave(self.pointer.diff())
        return torch.cat([counts.new_zeros(1), counts.cumsum(0)]), row[order], order

    def matrix(self) -> Tensor:
        """Return X as torch's sparse matrix."""
        return csr_tensor(self.pointer, self.columns, self.values, tuple(self.shape))

    def transpose(self) -> Tensor:
        """Return X^T as torch's sparse matrix."""
        pointer, rows, order = self._turned
        return csr_tensor(pointer, rows, self.values[order], (self.width, len(self)))


def dropped(x: Tensor | SparseFeatures, p: float, training: bool) -> Any:
    """Return x with each value set to zero with probability p, in training."""
    if not p or not training:
        return x
    if isinstance(x, SparseFeatures):
        return x.with_values(F.dropout(x.values, p))
    return F.dropout(x, p)


def linear(layer: nn.Linear, x: Tensor | SparseFeatures) -> Tensor:
    """Return a dense layer's outputs for features of either kind."""
    if isinstance(x, Tensor):
        found: Tensor = layer(x)
        return found
    product = x @ layer.weight.T
    return product if layer.bias is None else product + layer.bias


def dense_features(x: Tensor | SparseFeatures) -> Tensor:
    """Return features with their zeros."""
    return x.dense() if isinstance(x, SparseFeatures) else x
