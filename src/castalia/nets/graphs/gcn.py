"""Graph convolutional network: H' = s(A^ H W), layer by layer, A^ = D^-1/2 (A + I) D^-1/2.

Shapes: N nodes, D inputs, K outputs.
Reference: 2017, Kipf, Welling, Semi-supervised classification with graph convolutional networks,
arXiv 1609.02907.
"""

from typing import ClassVar

from castalia.nets.graphs.convolution_stack import ConvolutionStack, widths
from castalia.nn.graph import GCNConv

__all__ = ["GCN"]


class GCN(ConvolutionStack):
    """Stack of first-order graph convolutions.

    Parameters
    ----------
    inputs
        Width of a node's features.
    outputs
        Scores of a node; None: its states.
    hidden
        Width of the states.
    depth
        Layers, and so hops that a node sees.
    dropout
        Probability of zeroing what a layer is given, in training.
    activation
        Between the layers.
    edges
        Width of the features of edges.

    Examples
    --------
    >>> import torch
    >>> from castalia.nn.graph import Adjacency
    >>> edges = Adjacency.of(torch.tensor([[0, 1], [1, 0]]), 2)
    >>> GCN(5, 3)(torch.ones(2, 5), edges).shape
    torch.Size([2, 3])
    """

    sparse: ClassVar[bool] = True

    def __init__(
        self,
        inputs: int,
        outputs: int | None = None,
        *,
        hidden: int = 64,
        depth: int = 2,
        dropout: float = 0.0,
        activation: str = "relu",
        edges: int = 0,
    ) -> None:
        super().__init__(
            [GCNConv(a, b, edges=edges) for a, b in widths(inputs, outputs, hidden, depth)],
            outputs or hidden,
            activation=activation,
            dropout=dropout,
            scores=outputs is not None,
        )
