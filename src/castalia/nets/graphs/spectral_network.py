"""Stack of exact spectral convolutions, for graphs whose eigenvectors can be computed.

Shapes: N nodes, D inputs, K outputs.
Reference: 2014, Bruna, Zaremba, Szlam, LeCun, Spectral networks and locally connected networks on
graphs, arXiv 1312.6203.
"""

from castalia.nets.graphs.convolution_stack import ConvolutionStack, widths
from castalia.nn.graph import SpectralConv

__all__ = ["SpectralNetwork"]


class SpectralNetwork(ConvolutionStack):
    """Stack of filters of graph frequencies; a node sees its whole component.

    Parameters
    ----------
    inputs, outputs, hidden, depth, dropout, activation
        As for `GCN`.
    knots
        Eigenvalues at which each filter is learnt.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int | None = None,
        *,
        hidden: int = 64,
        depth: int = 2,
        knots: int = 8,
        dropout: float = 0.0,
        activation: str = "relu",
    ) -> None:
        pairs = widths(inputs, outputs, hidden, depth)
        super().__init__(
            [SpectralConv(a, b, knots=knots) for a, b in pairs],
            outputs or hidden,
            activation=activation,
            dropout=dropout,
            scores=outputs is not None,
        )
