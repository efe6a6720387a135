"""What graph networks are asked: nodes, graphs, links, and what is reachable."""

import numpy as np
import torch

from castalia.data import Graph
from castalia.models.graphs import GraphClassifier, LinkPredictor, NodeClassifier
from castalia.nets.graphs import GatedGraphNetwork
from castalia.nn.graph import GatedGraphConv
from castalia.testing import toy


def test_nodes_of_two_communities_are_told_apart_far_above_the_majority():
    X, y = toy("communities")
    model = NodeClassifier(hidden=8, epochs=40, random_state=0).fit(X[:80], y[:80])
    majority = max(np.mean(y[80:] == name) for name in ("red", "blue"))
    assert model.score(X[80:], y[80:]) > majority + 0.3


def test_rings_and_trees_are_told_apart():
    X, y = toy("rings")
    model = GraphClassifier(hidden=8, depth=2, epochs=15, random_state=0).fit(X[:60], y[:60])
    assert model.score(X[60:], y[60:]) > 0.95


def test_links_inside_planted_blocks_score_above_pairs_across():
    X, y = toy("blocks")
    half = len(X) // 2
    model = LinkPredictor(hidden=16, epochs=40, random_state=0).fit(X[:half], y[:half])
    assert model.score(X[half:], y[half:]) > 0.9
    h = model.module_.pairs(torch.from_numpy(model.embed(X.graph)), torch.from_numpy(X.index[:5]))
    assert np.allclose(model.predict_proba(X[:5])[:, 1], torch.sigmoid(h).detach(), atol=1e-6)


def test_a_gated_network_learns_what_can_be_reached():
    random = np.random.default_rng(0)
    edges, y, marked = [], [], np.zeros(240)
    for start in range(0, 240, 8):  # paths of eight nodes, cut at one place; one node is marked
        cut, first = random.integers(1, 8), random.integers(8)
        edges += [(start + i, start + i + 1) for i in range(7) if i + 1 != cut]
        marked[start + first] = 1
        y += [int((i < cut) == (first < cut)) for i in range(8)]
    graph = Graph(edges, np.stack([marked, 1 - marked], axis=1), y)
    model = NodeClassifier(
        network="gated", hidden=16, depth=7, epochs=120, lr=2e-2, l2=0.0, random_state=0
    ).fit(graph[:160])
    assert isinstance(model.module_.body, GatedGraphNetwork)
    assert isinstance(model.module_.body.recurrence, GatedGraphConv)
    assert model.score(graph[160:]) > 0.95
