"""What stacks of graph convolutions share: dropout, convolution, activation, layer by layer.

Shapes: N nodes, D inputs, K outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from torch import Tensor, nn

from castalia.nn import activation as activation_layer
from castalia.nn.graph import Adjacency, SparseFeatures, dropped

__all__ = ["ConvolutionStack"]


class ConvolutionStack(nn.Module):
    """Convolutions one after the other; a subclass makes the layers.

    Parameters
    ----------
    layers
        Each from states and edges to states.
    width
        Of the last layer's outputs.
    activation
        After every layer but the last, whose outputs are scores.
    dropout
        Before every layer.
    scores
        Whether the last layer gives scores; otherwise states, which get their activation too.
    """

    sparse: ClassVar[bool] = False  # whether the first layer takes sparse features as they are

    def __init__(
        self,
        layers: Sequence[nn.Module],
        width: int,
        *,
        activation: str = "relu",
        dropout: float = 0.0,
        scores: bool = True,
    ) -> None:
        super().__init__()
        self.layers, self.width, self.scores = nn.ModuleList(layers), width, scores
        self.activation, self.dropout = activation_layer(activation), dropout

    def encode(self, x: Tensor | SparseFeatures, adjacency: Adjacency) -> Tensor:  # (N, D)
        """Return the states that the last layer is given, or all layers' where none is last."""
        h: Any = x
        last = len(self.layers) - self.scores
        for layer in self.layers[:last]:
            h = self.activation(layer(dropped(h, self.dropout, self.training), adjacency))
        return h

    def forward(self, x: Tensor | SparseFeatures, adjacency: Adjacency) -> Tensor:  # (N, D)
        """Return the scores of all nodes, or their states."""
        h = self.encode(x, adjacency)
        if not self.scores:
            return h
        found: Tensor = self.layers[-1](dropped(h, self.dropout, self.training), adjacency)
        return found  # (N, K)


def widths(inputs: int, outputs: int | None, hidden: int, depth: int) -> list[tuple[int, int]]:
    """Return the inputs and outputs of each of ``depth`` layers.

    >>> widths(10, 3, 16, 2)
    [(10, 16), (16, 3)]
    """
    sizes = [inputs, *[hidden] * (depth - 1), hidden if outputs is None else outputs]
    return list(zip(sizes, sizes[1:], strict=False))
