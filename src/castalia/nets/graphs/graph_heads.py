"""What is asked of a graph: something of its nodes, of pairs of them, or of the whole.

Shapes: N nodes, B rows asked for, F states, K outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from castalia.errors import InvalidData
from castalia.nn import TableEmbedding
from castalia.nn.graph import PackedGraph, SparseFeatures
from castalia.nn.graph import readout as build_readout

__all__ = ["SCORES", "GraphHead", "LinkHead", "NodeHead", "NodeInputs"]

SCORES = ("dot", "bilinear", "mlp")


class NodeInputs(nn.Module):
    """Features of nodes with their categories embedded, which may be who each node is.

    Parameters
    ----------
    inputs
        Width of a node's encoded features.
    categories
        Sizes of the categorical columns, the last ones.
    """

    def __init__(self, inputs: int, categories: Sequence[int] = ()) -> None:
        super().__init__()
        self.embed = TableEmbedding(inputs - len(categories), categories) if categories else None
        self.width = inputs if self.embed is None else self.embed.width

    def forward(self, x: Tensor | SparseFeatures, body: nn.Module) -> Any:  # (N, inputs)
        """Return the features as a body takes them, (N, width): sparse only where it may be."""
        if isinstance(x, SparseFeatures):
            return x if getattr(body, "sparse", False) else x.dense()
        return x if self.embed is None else self.embed(x)


class NodeHead(nn.Module):
    """Scores of the nodes that are asked for.

    Parameters
    ----------
    inputs
        Makes numbers of features.
    body
        From features and edges to the scores of all nodes.
    """

    def __init__(self, inputs: NodeInputs, body: nn.Module) -> None:
        super().__init__()
        self.inputs, self.body = inputs, body

    def encode(self, graph: PackedGraph) -> Tensor:
        """Return the states of all nodes before their scores, (N, F)."""
        found: Tensor = self.body.encode(self.inputs(graph.x, self.body), graph.adjacency)  # type: ignore[operator]
        return found

    def forward(self, graph: PackedGraph) -> Tensor:
        """Return the outputs of what is asked for."""
        scores: Tensor = self.body(self.inputs(graph.x, self.body), graph.adjacency)  # (N, K)
        return scores if graph.rows is None else scores.index_select(0, graph.rows)  # (B, K)


class GraphHead(nn.Module):
    """Outputs for whole graphs: states of nodes, a readout, a dense layer.

    Parameters
    ----------
    inputs
        Makes numbers of features.
    body
        From features and edges to the states of all nodes; ``width`` says how wide they are.
    outputs
        Outputs of a graph.
    readout
        ``"sum"``, ``"mean"``, ``"max"``, ``"attention"`` or ``"universal"``.
    dropout
        Of what is read out.
    size
        Nodes of a usual graph, which sums are divided by: outputs begin as small as those of means.
    """

    def __init__(
        self,
        inputs: NodeInputs,
        body: nn.Module,
        outputs: int,
        *,
        readout: str = "sum",
        dropout: float = 0.0,
        size: float = 1.0,
    ) -> None:
        super().__init__()
        self.inputs, self.body = inputs, body
        width = int(body.width)  # type: ignore[arg-type]
        self.readout = build_readout(readout, width, size=size)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(width, outputs)

    def encode(self, graph: PackedGraph) -> Tensor:
        """Return what is read out of each graph, (B, F)."""
        h = self.body(self.inputs(graph.x, self.body), graph.adjacency)
        starts = graph.starts
        if starts is None:
            starts = torch.tensor([0, len(h)], device=h.device)
        found: Tensor = self.readout(h, starts)
        return found

    def forward(self, graph: PackedGraph) -> Tensor:
        """Return the outputs of what is asked for."""
        found: Tensor = self.head(self.dropout(self.encode(graph)))
        return found  # (B, K)


class LinkHead(nn.Module):
    """Scores of pairs of nodes; their logistic is the probability of a link.

    Parameters
    ----------
    inputs
        Makes numbers of features.
    body
        From features and edges to the states of all nodes.
    score
        ``"dot"``: h_u . h_v; ``"bilinear"``: h_u . W h_v with W symmetric; ``"mlp"``: the dot
        product and a dense network on the products of the two, which it is the sum of.
    """

    def __init__(self, inputs: NodeInputs, body: nn.Module, *, score: str = "dot") -> None:
        super().__init__()
        self.inputs, self.body, self.score = inputs, body, score
        width = int(body.width)  # type: ignore[arg-type]
        self.bias = nn.Parameter(torch.zeros(()))
        if score == "bilinear":
            self.weight = nn.Parameter(torch.eye(width))
        elif score == "mlp":
            last = nn.Linear(width, 1)
            self.mlp = nn.Sequential(nn.Linear(width, width), nn.ReLU(), last)
            nn.init.zeros_(last.weight)  # it begins as the dot product
            nn.init.zeros_(last.bias)

    def encode(self, graph: PackedGraph) -> Tensor:
        """Return the states of all nodes, (N, F)."""
        found: Tensor = self.body(self.inputs(graph.x, self.body), graph.adjacency)
        return found

    def pairs(self, h: Tensor, pairs: Tensor) -> Tensor:  # (N, F), (B, 2)
        """Return the score of each pair, (B,)."""
        u, v = h[pairs[:, 0]], h[pairs[:, 1]]
        if self.score == "mlp":
            return (u * v).sum(dim=1) + self.mlp(u * v).squeeze(1) + self.bias
        if self.score == "bilinear":
            v = v @ (self.weight + self.weight.T) / 2
        return (u * v).sum(dim=1) + self.bias

    def forward(self, graph: PackedGraph) -> Tensor:
        """Return the outputs of what is asked for."""
        if graph.rows is None:
            raise InvalidData("LinkHead: `graph.rows` must hold the pairs that are asked for.")
        return self.pairs(self.encode(graph), graph.rows)  # (B,)
