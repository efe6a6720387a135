"""The graph neural network model: states that solve an equation, read out by a dense layer.

h = F(h, x), F a contraction (`GraphRecurrence`); output W h + b. The states are iterated to rest
without gradients, by Anderson's acceleration; the gradient is that of the equation, by its adjoint,
so memory does not grow with the iterations.
Shapes: N nodes, D inputs, F states, K outputs.
Reference: 2009, Scarselli, Gori, Tsoi, Hagenbuchner, Monfardini, The graph neural network model,
IEEE TNN 20. Departs from it: the contraction is kept by the norm of W.
"""

from typing import Any

import torch
from torch import Tensor, nn

from castalia.autodiff import FixedPoint, fixed_point
from castalia.nn.graph import Adjacency, GraphRecurrence, edge_terms

__all__ = ["ScarselliNetwork"]

ACCELERATION = 5  # iterations that each one is mixed with


class ScarselliNetwork(nn.Module):
    """Fixed point of a recurrence over a graph.

    Parameters
    ----------
    inputs
        Width of a node's features.
    outputs
        Scores of a node; None: its states.
    hidden
        Width of the states.
    contraction
        Factor below 1 by which a step shrinks distances at least; larger ones let nodes see
        further and take more steps.
    tolerance
        Relative change at which states are at rest.
    edges
        Width of the features of edges.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int | None = None,
        *,
        hidden: int = 32,
        contraction: float = 0.9,
        tolerance: float = 1e-5,
        edges: int = 0,
    ) -> None:
        super().__init__()
        self.tolerance = tolerance
        self.recurrence = GraphRecurrence(inputs, hidden, contraction=contraction, edges=edges)
        self.width = hidden if outputs is None else outputs
        self.head = None if outputs is None else nn.Linear(hidden, outputs)

    def rest(
        self,
        x: Tensor,
        adjacency: Adjacency,
        start: Tensor | None = None,
        *,
        acceleration: int = ACCELERATION,
    ) -> FixedPoint:
        """Return the states at rest, and how far each iteration moved them."""
        step = self.recurrence
        w = [step.matrix(), step.target(x), step.source(x)]
        if step.edge is not None:
            w.append(edge_terms(step.edge, adjacency))

        def f(h: Tensor, w: Any) -> Tensor:
            matrix, own, near, *edge = w
            return GraphRecurrence.step(h, matrix, own, near, adjacency, *edge)

        h0 = torch.zeros_like(w[1]) if start is None else start
        return fixed_point(f, h0, tuple(w), tolerance=self.tolerance, acceleration=acceleration)

    def encode(self, x: Tensor, adjacency: Adjacency) -> Tensor:  # (N, D)
        """Return the states at rest, (N, F)."""
        found: Tensor = self.rest(x, adjacency).z
        return found

    def forward(self, x: Tensor, adjacency: Adjacency) -> Tensor:  # (N, D)
        """Return the scores of all nodes, or their states."""
        h = self.encode(x, adjacency)
        return h if self.head is None else self.head(h)  # (N, K)
