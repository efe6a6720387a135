"""Estimators over graphs: every network learns, unlabelled nodes take part, reasons are given."""

import numpy as np
import pytest
import torch
from sklearn.model_selection import cross_val_score
from torch import nn

from castalia.data import Graph, Graphs
from castalia.errors import InvalidData, InvalidParameter
from castalia.models.graphs import GraphClassifier, LinkPredictor, NodeClassifier, NodeRegressor
from castalia.models.graphs.network_choice import NETWORKS
from castalia.testing import toy
from castalia.train import Callback, Training

QUIET = Training(watch=False, validation=0)


@pytest.fixture(scope="module")
def communities():
    X, y = toy("communities")
    return X.graph, y


@pytest.mark.parametrize("network", NETWORKS)
def test_every_network_learns_who_belongs_together(network, communities):
    graph, y = communities
    model = NodeClassifier(
        network=network, hidden=8, epochs=25, lr=3e-2, dropout=0.1, random_state=0, training=QUIET
    ).fit(graph[:100], y[:100])
    assert model.score(graph[100:], y[100:]) > 0.8  # the majority, and features alone: 0.5, 0.6


def test_targets_may_be_missing_in_any_of_the_usual_ways(communities):
    graph, y = communities
    known = np.arange(160) < 60
    model = NodeClassifier(hidden=8, epochs=15, random_state=0, training=QUIET)
    expected = model.fit(graph[:60], y[:60]).predict_proba(graph)
    codes = (y == "red").astype(int)
    for column in (
        np.where(known, y, None),
        [value if there else np.nan for value, there in zip(y, known, strict=True)],
    ):
        assert np.array_equal(model.fit(graph, column).predict_proba(graph), expected)
    for column in (np.where(known, codes, -1), np.where(known, codes, np.nan)):
        assert np.array_equal(model.fit(graph, column).predict_proba(graph), expected)
        assert model.classes_.tolist() == [0, 1]
    assert model.score(graph, np.where(known, codes, -1)) == model.score(graph[:60], codes[:60])
    with pytest.raises(InvalidData, match="a target for some nodes; got none"):
        model.fit(graph, np.full(160, None))


def test_nodes_without_a_target_take_part(communities):
    graph, y = communities
    model = NodeClassifier(hidden=8, epochs=5, random_state=0, training=QUIET).fit(
        graph[:60], y[:60]
    )
    bare = Graph(graph.edges[(graph.edges < 60).all(axis=1)], graph.x, nodes=graph.ids)
    alone = NodeClassifier(hidden=8, epochs=5, random_state=0, training=QUIET)
    weights = alone.fit(bare[:60], y[:60]).module_.state_dict()
    assert any(not torch.equal(v, weights[k]) for k, v in model.module_.state_dict().items())


def test_scikit_learn_divides_nodes(communities):
    graph, y = communities
    model = NodeClassifier(hidden=8, epochs=20, random_state=0, training=QUIET)
    assert cross_val_score(model, graph[:], y, cv=3).mean() > 0.8


def test_sampled_neighbourhoods_train_the_same_estimator(communities):
    graph, y = communities
    settings = {"network": "sage", "hidden": 8, "epochs": 10, "random_state": 0, "batch_size": 20}
    model = NodeClassifier(neighbours=(4, 4), **settings, training=QUIET)
    first = model.fit(graph[:100], y[:100]).predict_proba(graph)
    assert model.score(graph[100:], y[100:]) > 0.8
    assert np.array_equal(model.fit(graph[:100], y[:100]).predict_proba(graph), first)


def test_shares_of_edges_sum_to_what_messages_changed_and_reach_no_further_than_the_layers():
    here = np.arange(8)
    path = Graph(np.stack([here, here + 1], axis=1), np.random.default_rng(0).normal(size=(9, 3)))
    y = np.arange(9) % 2
    model = NodeClassifier(hidden=8, epochs=30, dropout=0.0, random_state=0, training=QUIET)
    found = model.fit(path, y).explain(path, 0, steps=200)
    assert abs(found.edge_shares.sum() - found.gap) < 1e-2 * max(1, abs(found.gap))
    assert set(found.edges.ravel().tolist()) <= {0, 1, 2}
    assert 0 in found.nodes
    assert abs(found.gap) > 1e-3


def test_states_of_nodes_and_graphs_are_what_the_last_layer_is_given(communities):
    graph, y = communities
    model = NodeClassifier(hidden=8, epochs=2, random_state=0, training=QUIET).fit(
        graph[:60], y[:60]
    )
    assert model.embed(graph[5:9]).shape == (4, 8)
    graphs, z = toy("rings")
    other = GraphClassifier(hidden=4, depth=2, epochs=1, random_state=0, training=QUIET)
    h = torch.from_numpy(other.fit(graphs[:20], z[:20]).embed(graphs[:20]))
    scores = other.module_.head(h).detach()
    assert torch.equal(
        scores.argmax(1), torch.from_numpy(other._outputs(graphs[:20]).argmax(1).numpy())
    )


class Mean(nn.Module):
    """A network of somebody else."""

    width = 3

    def __init__(self):
        super().__init__()
        self.map = nn.Linear(4, 3)

    def forward(self, x, adjacency):
        return self.map(x) + adjacency.averaged() @ self.map(x)


def test_any_network_will_do_that_says_how_wide_its_states_are(communities):
    graph, y = communities
    names = np.array(["red", "blue", "green"], dtype=object)[np.arange(160) % 3]
    model = NodeClassifier(network=Mean(), epochs=3, random_state=0, training=QUIET)
    assert model.fit(graph, names).predict_proba(graph).shape == (160, 3)
    linked = LinkPredictor(network=Mean(), epochs=3, random_state=0, training=QUIET).fit(graph)
    assert linked.embed(graph).shape == (160, 3)
    with pytest.raises(InvalidParameter, match="must have an attribute `width`"):
        LinkPredictor(network=nn.Linear(4, 3)).fit(graph)


def test_links_are_ranked_and_scored():
    X, y = toy("blocks")
    model = LinkPredictor(hidden=16, epochs=40, random_state=0).fit(X[:300], y[:300])
    links = X[300:][y[300:] == 1]
    found = model.ranking(X.graph, X.graph.ids[links.index])
    assert found["hits@10"] > 0.5 > found["hits@1"]
    assert 0.1 < found["mrr"] < 1
    assert model.score(X.graph) > 0.85
    with pytest.raises(InvalidData, match="1 for links and 0 for pairs without"):
        model.fit(X, y + 3)


def test_classes_of_nodes_are_no_targets_of_links(communities):
    graph, y = communities
    labelled = Graph(graph.edges, graph.x, y)
    model = LinkPredictor(hidden=4, epochs=2, random_state=0, training=QUIET)
    found = model.fit(labelled).predict_proba(labelled, [(0, 1)])
    assert np.array_equal(found, model.fit(graph).predict_proba(graph, [(0, 1)]))


def test_a_regressor_of_nodes_leaves_out_those_without_a_number():
    X, y = toy("heights")
    holed = np.where(np.arange(len(y)) < 100, y, np.nan)
    model = NodeRegressor(
        network="sage", hidden=16, epochs=120, dropout=0.0, l2=0.0, random_state=0
    )
    model.set_params(training=QUIET).fit(X, holed)
    assert model.score(X[100:], y[100:]) > 0.8


def test_directed_graphs_are_refused_where_symmetric_ones_are_needed():
    graph = Graph([(0, 1), (1, 2)], np.eye(3), directed=True)
    with pytest.raises(InvalidData, match="needs an undirected graph"):
        NodeClassifier(network="spectral", epochs=1).fit(graph, [0, 1, 1])


def test_frames_of_nodes_may_hold_words_and_gaps():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": [1.0, None, 3.0, 9.0], "job": ["a", "b", "a", "b"]})
    graph = Graph([(0, 1), (1, 2), (2, 3)], frame)
    model = NodeClassifier(hidden=4, epochs=3, random_state=0, training=QUIET)
    assert model.fit(graph, ["x", "y", "x", "y"]).predict(graph).shape == (4,)


def test_isomorphic_graphs_get_the_same_answer():
    graphs, y = toy("rings")
    model = GraphClassifier(hidden=8, depth=2, epochs=2, random_state=0, training=QUIET)
    model.fit(graphs[:40], y[:40])
    random = np.random.default_rng(0)
    orders = [random.permutation(len(graph)) for graph in graphs[:40]]
    relabelled = Graphs(
        [
            Graph(o[g.edges], nodes=np.arange(len(g)))
            for g, o in zip(graphs[:40], orders, strict=True)
        ]
    )
    found = model.predict_proba(relabelled)
    assert np.abs(found - model.predict_proba(graphs[:40])).max() < 1e-5


class LayersByStage(Callback):
    """Weights of all layers at the end of every epoch."""

    def __init__(self):
        self.seen = {}

    def on_epoch_end(self, state):
        layers = state.net.body.layers
        self.seen[state.stage_index] = [layer.own.weight.detach().clone() for layer in layers]


def test_greedy_layers_are_trained_one_by_one_and_stay(communities):
    graph, y = communities
    stages = LayersByStage()
    quiet = Training(watch=False, validation=0, verbose=False, callbacks=[stages])
    model = NodeClassifier(
        network="nn4g", greedy=True, depth=3, hidden=8, epochs=30, lr=3e-2, random_state=0
    )
    model.training = quiet
    model.fit(graph[:100], y[:100])
    first, second, third = (stages.seen[k] for k in range(3))
    for layer in range(3):
        assert torch.equal(first[layer], second[layer]) == (layer != 1)
        assert torch.equal(second[layer], third[layer]) == (layer != 2)
    losses = [line["loss"] for line in model.history_]
    assert len(losses) == 90
    assert losses[29] > losses[59] > losses[89]  # contexts of one and two hops are added
    assert model.module_.body.grown == 3
    assert model.score(graph[100:], y[100:]) > 0.8
    with pytest.raises(InvalidParameter, match="`greedy` layers are those of network='nn4g'"):
        NodeClassifier(greedy=True).fit(graph, y)
