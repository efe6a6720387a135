"""GraphSAGE: each node beside the mean of its neighbours, layer by layer.

h'_v = s(W_1 h_v + W_2 mean_u h_u).  Shapes: N nodes, D inputs, K outputs.
Reference: 2017, Hamilton, Ying, Leskovec, Inductive representation learning on large graphs,
arXiv 1706.02216. Departs from it: states are not brought to length one.
"""

from typing import ClassVar

from castalia.nets.graphs.convolution_stack import ConvolutionStack, widths
from castalia.nn.graph import SAGEConv

__all__ = ["GraphSAGE"]


class GraphSAGE(ConvolutionStack):
    """Stack of SAGE convolutions; parameters as for `GCN`."""

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
            [SAGEConv(a, b, edges=edges) for a, b in widths(inputs, outputs, hidden, depth)],
            outputs or hidden,
            activation=activation,
            dropout=dropout,
            scores=outputs is not None,
        )
