"""Graphs as matrices: walks, Laplacians and the Fourier transform over a graph.

L = I - D^-1/2 A D^-1/2 = U diag(lambda) U^T, x^ = U^T x, x = U x^.
Shapes: N nodes, F features.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from castalia.errors import InvalidData, InvalidParameter
from castalia.nn.graph.adjacency import Adjacency

__all__ = ["GraphBasis", "fourier_basis", "graph_fourier", "laplacian", "walk_counts"]

LARGEST = 5_000  # nodes of a graph whose eigenvectors are computed


class GraphBasis(NamedTuple):
    """Eigenvalues, ascending, (N,), and eigenvectors, (N, N), of a Laplacian."""

    values: Tensor
    vectors: Tensor

    def transform(self, x: Tensor) -> Tensor:  # (N, F)
        """Return U^T x."""
        return self.vectors.T @ x

    def inverse(self, coefficients: Tensor) -> Tensor:  # (N, F)
        """Return U x^."""
        return self.vectors @ coefficients

    def convolve(self, signal: Tensor, x: Tensor) -> Tensor:  # (N,), (N, F)
        """Return the convolution over the graph, U ((U^T f) * (U^T x))."""
        return self.inverse((self.vectors.T @ signal)[:, None] * self.transform(x))


def _matrix(graph: Adjacency | Tensor) -> Tensor:
    return graph.dense() if isinstance(graph, Adjacency) else torch.as_tensor(graph).double()


def walk_counts(graph: Adjacency | Tensor, length: int) -> Tensor:
    """Return how many walks of a length lead from each node to each other, A^length, (N, N).

    Examples
    --------
    >>> walk_counts(torch.tensor([[0, 1, 0], [1, 0, 1], [0, 1, 0]]), 2).int().tolist()
    [[1, 0, 1], [0, 2, 0], [1, 0, 1]]
    """
    if length < 0:
        raise InvalidParameter(f"walk_counts: `length` must be at least 0; got {length!r}.")
    return torch.linalg.matrix_power(_matrix(graph), length)


def laplacian(graph: Adjacency | Tensor, *, normalised: bool = True) -> Tensor:
    """Return L = I - D^-1/2 A D^-1/2, or D - A, as a dense matrix (N, N).

    A node without edges has L = 1 on the diagonal, or 0 of the one that is not normalised.

    Examples
    --------
    >>> laplacian(torch.tensor([[0, 1], [1, 0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]], dtype=torch.float64)
    """
    matrix = _matrix(graph)
    if not torch.equal(matrix, matrix.T):
        raise InvalidData(
            "laplacian: the graph must be undirected, its matrix symmetric; got a directed one. "
            "Add the reverse of every edge, or make it with directed=False."
        )
    degree = matrix.sum(dim=1)
    if not normalised:
        return torch.diag(degree) - matrix
    root = torch.where(degree > 0, degree.rsqrt(), torch.zeros_like(degree))
    return torch.eye(len(matrix), dtype=matrix.dtype) - root[:, None] * matrix * root


def fourier_basis(graph: Adjacency | Tensor) -> GraphBasis:
    """Return the eigenvalues and eigenvectors of the normalised Laplacian.

    Raises
    ------
    InvalidData
        Above 5,000 nodes, whose dense matrix would not fit; `ChebyshevConv` needs none.
    """
    nodes = graph.nodes if isinstance(graph, Adjacency) else len(graph)
    if nodes > LARGEST:
        raise InvalidData(
            f"spectral: a graph must have at most {LARGEST:,} nodes, as its eigenvectors are a "
            f"dense matrix; got {nodes:,}. Use network='chebyshev', which needs none."
        )
    return GraphBasis(*torch.linalg.eigh(laplacian(graph)))


def graph_fourier(graph: Adjacency | Tensor, x: Tensor) -> Tensor:
    """Return U^T x, the coefficients of signals x (N, F) over the graph.

    Examples
    --------
    >>> graph_fourier(torch.tensor([[0, 1], [1, 0]]), torch.ones(2, 1)).abs().round(decimals=4)
    tensor([[1.4142],
            [0.0000]], dtype=torch.float64)
    """
    return fourier_basis(graph).transform(torch.as_tensor(x).double())
