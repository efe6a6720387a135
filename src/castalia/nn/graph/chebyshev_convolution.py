"""Spectral filters as polynomials of the Laplacian, which need no eigenvectors.

h' = sum_k T_k(L~) h W_k + b with L~ = 2 L / lambda - I, lambda = 2 the largest eigenvalue that a
normalised Laplacian can have, T_0 = 1, T_1(x) = x, T_k(x) = 2 x T_{k-1}(x) - T_{k-2}(x).
Shapes: N nodes, D inputs, O outputs, K terms, which reach K - 1 hops far.
Reference: 2016, Defferrard, Bresson, Vandergheynst, Convolutional neural networks on graphs with
fast localized spectral filtering, arXiv 1606.09375.
"""

from torch import Tensor, nn

from castalia.nn.graph.adjacency import Adjacency

__all__ = ["ChebyshevConv"]


class ChebyshevConv(nn.Module):
    """Polynomial of the Laplacian.

    Parameters
    ----------
    inputs, outputs
        Widths.
    terms
        Number of polynomials K; one alone sees no neighbour.
    """

    def __init__(self, inputs: int, outputs: int, *, terms: int = 3) -> None:
        super().__init__()
        self.maps = nn.ModuleList(
            nn.Linear(inputs, outputs, bias=k == 0) for k in range(terms)
        )  # T_k(L~) h W_k

    def forward(self, x: Tensor, adjacency: Adjacency) -> Tensor:  # (N, D)
        """Return the filtered features."""
        mixed = adjacency.normalised(loops=False)  # L~ = -D^-1/2 A D^-1/2
        before, now = x, x
        found: Tensor = self.maps[0](x)
        for k, linear in enumerate(self.maps):
            if k:
                step = -(mixed @ now)
                before, now = now, step if k == 1 else 2 * step - before
                found = found + linear(now)
        return found  # (N, O)
