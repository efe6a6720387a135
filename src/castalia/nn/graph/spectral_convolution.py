"""Exact spectral convolution: each eigenvector of the Laplacian is weighted by its eigenvalue.

h' = U g(lambda) U^T h + b, where g is a matrix (D, O) for each eigenvalue, interpolated between
knots in 0 to 2: so its weights do not depend on the size of the graph, nor on which eigenvectors
stand for an eigenvalue that occurs twice.
Shapes: N nodes, D inputs, O outputs, K knots.
Reference: 2014, Bruna, Zaremba, Szlam, LeCun, Spectral networks and locally connected networks on
graphs, arXiv 1312.6203.
"""

import torch
from torch import Tensor, nn

from castalia.nn.graph.adjacency import Adjacency
from castalia.nn.graph.graph_spectrum import GraphBasis, fourier_basis

__all__ = ["SpectralConv"]


class SpectralConv(nn.Module):
    """Filter of graph frequencies.

    Parameters
    ----------
    inputs, outputs
        Widths.
    knots
        Eigenvalues at which the filter is learnt; with more it can be less smooth, and reach
        further.

    Notes
    -----
    The eigenvectors are computed once a graph, in N^3 steps and N^2 memory; above 5,000 nodes that
    is refused.
    """

    def __init__(self, inputs: int, outputs: int, *, knots: int = 8) -> None:
        super().__init__()
        self.filters = nn.Parameter(torch.empty(knots, inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(outputs))
        nn.init.normal_(self.filters, std=(2 / (inputs + outputs)) ** 0.5)

    def response(self, values: Tensor) -> Tensor:  # (N,) eigenvalues
        """Return how much of each knot's filter an eigenvalue gets, (N, K); rows sum to one."""
        knots = torch.linspace(0, 2, len(self.filters), dtype=values.dtype, device=values.device)
        apart = 2 / (len(self.filters) - 1) if len(self.filters) > 1 else 2.0
        share = (1 - (values[:, None] - knots).abs() / apart).clamp_min(0)
        return share if len(self.filters) > 1 else torch.ones_like(share)

    def forward(self, x: Tensor, adjacency: Adjacency) -> Tensor:  # (N, D)
        """Return the filtered features."""
        parts = [
            self._filtered(x[start:stop], basis) for start, stop, basis in _bases(adjacency, x)
        ]
        return torch.cat(parts) + self.bias  # (N, O)

    def _filtered(self, x: Tensor, basis: GraphBasis) -> Tensor:
        share = self.response(basis.values)  # (N, K)
        coefficients = basis.transform(x)  # (N, D)
        return basis.inverse(torch.einsum("nk,nd,kdo->no", share, coefficients, self.filters))


def _bases(adjacency: Adjacency, x: Tensor) -> list[tuple[int, int, GraphBasis]]:
    """Return where each graph's nodes begin and end, and its eigenvectors in the format of x."""
    key = ("bases", x.dtype)
    if key not in adjacency._made:
        starts = [0, adjacency.nodes] if adjacency.blocks is None else adjacency.blocks.tolist()
        adjacency._made[key] = [
            (a, b, GraphBasis(*(part.to(x) for part in fourier_basis(_block(adjacency, a, b)))))
            for a, b in zip(starts, starts[1:], strict=False)
        ]
    found: list[tuple[int, int, GraphBasis]] = adjacency._made[key]
    return found


def _block(adjacency: Adjacency, start: int, stop: int) -> Adjacency:
    """Return the matrix of one of the packed graphs."""
    if stop - start == adjacency.nodes:
        return adjacency
    first, last = int(adjacency.pointer[start]), int(adjacency.pointer[stop])
    weight = None if adjacency.weight is None else adjacency.weight[first:last]
    return Adjacency(
        adjacency.pointer[start : stop + 1] - first, adjacency.source[first:last] - start, weight
    )
