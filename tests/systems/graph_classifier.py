"""Graphs of different sizes: a batch is one block-diagonal graph."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from castalia.base import Classifier, Estimator
from castalia.data.adapter_base import Adapter
from castalia.objectives import CrossEntropy
from castalia.protocols import Rows


@dataclass
class Packed:
    """Several graphs as one: features of all nodes (N, D), edges (2, E), each node's graph (N,)."""

    nodes: Tensor
    edges: Tensor
    graph: Tensor
    size: int


class GraphRows(Rows):
    def __init__(self, graphs):
        self.graphs = graphs

    def __len__(self):
        return len(self.graphs)

    def take(self, index, width=None):
        nodes, edges = zip(*(self.graphs[i] for i in index.tolist()), strict=True)
        counts = torch.tensor([len(part) for part in nodes])
        first = counts.cumsum(0) - counts  # where the nodes of each graph begin
        joined = torch.cat([part + start for part, start in zip(edges, first, strict=True)], dim=1)
        graph = torch.arange(len(counts)).repeat_interleave(counts)
        return Packed(torch.cat(nodes), joined, graph, len(counts))


class GraphAdapter(Adapter):
    def check(self, X, owner):
        return [(np.asarray(nodes), np.asarray(edges)) for nodes, edges in X]

    def fit(self, X, sample_weight=None):
        self.inputs = X[0][0].shape[1]
        return self

    def rows(self, X, dtype):
        return GraphRows([(torch.from_numpy(n.astype(dtype)), torch.from_numpy(e)) for n, e in X])


class GraphNetwork(nn.Module):
    """h_i = relu(U h_i + V sum of the neighbours' h), twice; a graph is the mean of its nodes."""

    def __init__(self, inputs, outputs, hidden):
        super().__init__()
        self.own = nn.ModuleList([nn.Linear(inputs, hidden), nn.Linear(hidden, hidden)])
        self.near = nn.ModuleList([nn.Linear(inputs, hidden), nn.Linear(hidden, hidden)])
        self.head = nn.Linear(hidden, outputs)

    def forward(self, x):
        h, (source, target) = x.nodes, x.edges
        for own, near in zip(self.own, self.near, strict=True):
            nearby = torch.zeros_like(h).index_add(0, target, h[source])
            h = torch.relu(own(h) + near(nearby))
        total = h.new_zeros(x.size, h.shape[1]).index_add(0, x.graph, h)
        return self.head(total / x.graph.bincount(minlength=x.size)[:, None])  # (B, K)


@dataclass(kw_only=True, eq=False, repr=False)
class GraphClassifier(Classifier, Estimator):
    adapter: ClassVar = GraphAdapter
    hidden: int = 16

    def _network(self, spec):
        return GraphNetwork(spec.inputs, spec.outputs, self.hidden)

    def _objective(self, spec):
        return CrossEntropy()
