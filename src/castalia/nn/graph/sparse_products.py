"""Products of sparse matrices and dense ones, with gradients by the transposed matrix.

y = A x, dL/dx = A^T dL/dy, and dL/dA_ij = <dL/dy_i, x_j> on the edges only.
Shapes: N nodes, E edges, F features, H heads.
"""

from __future__ import annotations

import warnings
from typing import Any, Protocol

import torch
from torch import Tensor

__all__ = [
    "csr_tensor",
    "edge_sources",
    "edge_targets",
    "exactly",
    "product",
    "target_sum",
    "weighted_product",
]


class Edges(Protocol):
    """What products need of an adjacency matrix: its edges sorted by target, and by source."""

    source: Tensor

    @property
    def target(self) -> Tensor:
        """Node in which each edge ends, (E,)."""

    @property
    def turned(self) -> Tensor:
        """Positions of the edges, sorted by source, (E,)."""

    @property
    def offsets(self) -> Tensor:
        """Where the edges of each target begin, (N + 1,)."""

    @property
    def transposed(self) -> Any:
        """The same edges, turned round."""

    def matrix(self, dtype: torch.dtype) -> Tensor:
        """Return torch's sparse matrix."""

    def weighted_matrix(self, weight: Tensor) -> Tensor:
        """Return torch's sparse matrix with other weights."""


def csr_tensor(pointer: Tensor, columns: Tensor, values: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return torch's sparse matrix of these rows, unchecked."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
        warnings.filterwarnings("ignore", "Sparse invariant checks are implicitly disabled")
        return torch.sparse_csr_tensor(pointer, columns, values, size=shape, check_invariants=False)


def exactly(matrix: Tensor, x: Tensor) -> Tensor:
    """Return a sparse matrix times a dense one, in the matrix's format under autocast too.

    Autocast would ask for the product in 16 bits, which sparse kernels do not have.
    """
    with torch.autocast(x.device.type, enabled=False):
        return matrix @ x.to(matrix.dtype)


def _wide(x: Tensor) -> Tensor:
    """Return numbers in a format that sparse products have."""
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x


class _Product(torch.autograd.Function):
    """A x with the weights that the adjacency has."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, adjacency: Edges) -> Tensor:
        ctx.adjacency = adjacency
        return exactly(adjacency.matrix(x.dtype), x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _Product.apply(grad.contiguous(), ctx.adjacency.transposed), None


class _WeightedProduct(torch.autograd.Function):
    """A x with weights of the edges that are learnt."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, x: Tensor, adjacency: Edges) -> Tensor:
        ctx.save_for_backward(weight, x)
        ctx.adjacency = adjacency
        return exactly(adjacency.weighted_matrix(weight.to(x.dtype)), x)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        weight, x = ctx.saved_tensors
        edges, by_weight, by_x = ctx.adjacency, None, None
        if ctx.needs_input_grad[0]:
            by_weight = (grad[edges.target] * x[edges.source]).sum(dim=1).to(weight.dtype)
        if ctx.needs_input_grad[1]:
            turned = weight[edges.turned].to(grad.dtype)
            by_x = exactly(edges.transposed.weighted_matrix(turned), grad.contiguous())
        return by_weight, by_x, None


class _TargetSum(torch.autograd.Function):
    """Sums over the edges that end in each node; its gradient reads each node's value back."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, adjacency: Edges) -> Tensor:
        ctx.adjacency = adjacency
        return torch.segment_reduce(values.contiguous(), "sum", offsets=adjacency.offsets)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _TargetValues.apply(grad, ctx.adjacency), None


class _TargetValues(torch.autograd.Function):
    """Each edge's value of the node it ends in."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, adjacency: Edges) -> Tensor:
        ctx.adjacency = adjacency
        return values[adjacency.target]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _TargetSum.apply(grad, ctx.adjacency), None


class _SourceValues(torch.autograd.Function):
    """Each edge's value of the node it begins in."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, adjacency: Edges) -> Tensor:
        ctx.adjacency = adjacency
        return values[adjacency.source]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        turned = grad[ctx.adjacency.turned]
        return _TargetSum.apply(turned, ctx.adjacency.transposed), None


def product(adjacency: Edges, x: Tensor) -> Tensor:  # (N, F)
    """Return A x, (N, F); the gradient needs no list of messages."""
    found: Tensor = _Product.apply(_wide(x).contiguous(), adjacency)
    return found


def weighted_product(adjacency: Edges, weight: Tensor, x: Tensor) -> Tensor:  # (E,), (N, F)
    """Return A x, (N, F), where A has these weights, which get a gradient too."""
    found: Tensor = _WeightedProduct.apply(weight, _wide(x).contiguous(), adjacency)
    return found


def target_sum(adjacency: Edges, values: Tensor) -> Tensor:  # (E, …)
    """Return the sum of each node's incoming values, (N, …)."""
    found: Tensor = _TargetSum.apply(values, adjacency)
    return found


def edge_targets(adjacency: Edges, values: Tensor) -> Tensor:  # (N, …)
    """Return for each edge the value of the node it ends in, (E, …)."""
    found: Tensor = _TargetValues.apply(values, adjacency)
    return found


def edge_sources(adjacency: Edges, values: Tensor) -> Tensor:  # (N, …)
    """Return for each edge the value of the node it begins in, (E, …)."""
    found: Tensor = _SourceValues.apply(values, adjacency)
    return found
