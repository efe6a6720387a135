"""Stack of spectral filters that are polynomials of the Laplacian.

Shapes: N nodes, D inputs, K outputs.
Reference: 2016, Defferrard, Bresson, Vandergheynst, Convolutional neural networks on graphs with
fast localized spectral filtering, arXiv 1606.09375.
"""

from castalia.nets.graphs.convolution_stack import ConvolutionStack, widths
from castalia.nn.graph import ChebyshevConv

__all__ = ["ChebyshevNetwork"]


class ChebyshevNetwork(ConvolutionStack):
    """Stack of Chebyshev convolutions.

    Parameters
    ----------
    inputs, outputs, hidden, depth, dropout, activation
        As for `GCN`.
    terms
        Polynomials of each filter; a layer sees one hop less.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int | None = None,
        *,
        hidden: int = 64,
        depth: int = 2,
        terms: int = 3,
        dropout: float = 0.0,
        activation: str = "relu",
    ) -> None:
        pairs = widths(inputs, outputs, hidden, depth)
        super().__init__(
            [ChebyshevConv(a, b, terms=terms) for a, b in pairs],
            outputs or hidden,
            activation=activation,
            dropout=dropout,
            scores=outputs is not None,
        )
