"""Graph attention network: layers whose heads weigh each neighbour.

Shapes: N nodes, D inputs, K outputs.
Reference: 2018, Veličković et al., Graph attention networks, arXiv 1710.10903.
"""

from functools import partial
from typing import ClassVar

from castalia.nets.graphs.convolution_stack import ConvolutionStack
from castalia.nn.graph import GATConv

__all__ = ["GAT"]


class GAT(ConvolutionStack):
    """Stack of graph attention layers.

    Parameters
    ----------
    inputs, outputs, depth, activation, edges
        As for `GCN`.
    hidden
        Width of the states of all heads together.
    heads
        Attention heads of the hidden layers; those of the last layer of scores are averaged.
    last_heads
        Heads of the last layer of scores.
    dropout
        Of states and of attention.
    message_dropout
        Of what is passed on.
    """

    sparse: ClassVar[bool] = True

    def __init__(
        self,
        inputs: int,
        outputs: int | None = None,
        *,
        hidden: int = 64,
        depth: int = 2,
        heads: int = 8,
        last_heads: int = 1,
        dropout: float = 0.0,
        message_dropout: float = 0.0,
        activation: str = "elu",
        edges: int = 0,
    ) -> None:
        part = max(1, hidden // heads)
        count = depth - (outputs is not None)
        sizes = [inputs, *[part * heads] * count]
        layer = partial(GATConv, dropout=dropout, message_dropout=message_dropout, edges=edges)
        layers = [layer(a, part, heads=heads) for a in sizes[:count]]
        if outputs is not None:
            layers.append(layer(sizes[-1], outputs, heads=last_heads, join="mean"))
        super().__init__(
            layers,
            outputs or part * heads,
            activation=activation,
            dropout=dropout,
            scores=outputs is not None,
        )
