"""Features of edges: messages edge by edge, parity with PyTorch Geometric, estimators use them."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia import load, save
from castalia.data import Graph, Graphs, read_graphs
from castalia.data.graphs import NeighbourRows
from castalia.errors import DataWarning, InvalidData, InvalidParameter
from castalia.models.graphs import GraphClassifier, LinkPredictor, NodeClassifier
from castalia.models.graphs.network_choice import NETWORKS
from castalia.nn.graph import (
    Adjacency,
    GATConv,
    GCNConv,
    GINConv,
    GraphRecurrence,
    PackedGraph,
    SAGEConv,
    edge_map,
    neighbour_sum,
)
from castalia.train import Training

QUIET = Training(watch=False, validation=0, verbose=False)
WITH_EDGES = ["gcn", "sage", "gat", "gin", "nn4g", "scarselli", "gated"]


@pytest.fixture
def drawn():
    """Edges in no order, their features, and features of nodes; the last node has no edge."""
    torch.manual_seed(0)
    dense = (torch.rand(8, 8) < 0.4).fill_diagonal_(False)
    dense[-1] = dense[:, -1] = False
    edges = dense.nonzero().T
    edges = edges[:, torch.randperm(edges.shape[1])]
    features = torch.randn(edges.shape[1], 2).double()
    return edges, features, torch.randn(8, 4).double()


def one_by_one(edges, features, h, edge):
    """The sum of relu(h_u + W e), an edge at a time."""
    found = torch.zeros(8, h.shape[1]).double()
    for (u, v), e in zip(edges.T.tolist(), features, strict=True):
        found[v] += torch.relu(h[u] + edge.weight @ e)
    return found


def test_messages_are_summed_edge_by_edge(drawn):
    edges, features, x = drawn
    adjacency = Adjacency.of(edges, 8, edge_x=features)
    edge = edge_map(2, 4).double()
    expected = one_by_one(edges, features, x, edge)
    assert_close(neighbour_sum(adjacency, x, edge), expected)
    gin = GINConv(nn.Identity(), edge=edge)
    assert_close(gin(x, adjacency), x + expected)
    sage = SAGEConv(4, 4, edges=2).double()
    counts = torch.bincount(edges[1], minlength=8).clamp_min(1)[:, None]
    near = one_by_one(edges, features, sage.near(x), sage.edge) / counts
    assert_close(sage(x, adjacency), sage.own(x) + near)
    half = adjacency.masked(torch.full((adjacency.edges,), 0.5).double())
    assert_close(neighbour_sum(half, x, edge), expected / 2)


def test_a_loop_that_a_layer_adds_has_the_mean_features_of_the_edges_into_its_node(drawn):
    edges, features, x = drawn
    looped = Adjacency.of(edges, 8, edge_x=features).with_loops()
    for v in range(8):
        into = features[edges[1] == v]
        found = looped.edge_x[(looped.target == v) & (looped.source == v)]
        mean = into.mean(dim=0) if len(into) else torch.zeros(2).double()
        assert_close(found[0], mean)
    gcn = GCNConv(4, 3, edges=2).double()
    a = looped.normalised()
    expected = torch.zeros(8, 3).double()
    for e in range(a.edges):
        message = torch.relu(x[a.source[e]] @ gcn.weight + gcn.edge.weight @ a.edge_x[e])
        expected[a.target[e]] += a.weight[e] * message
    assert_close(gcn(x, Adjacency.of(edges, 8, edge_x=features)), expected + gcn.bias)


def test_the_recurrence_adds_what_edges_say(drawn):
    edges, features, x = drawn
    layer = GraphRecurrence(4, 3, edges=2).double()
    adjacency, h = Adjacency.of(edges, 8, edge_x=features), torch.randn(8, 3).double()
    a, expected = adjacency.normalised(loops=False), torch.zeros(8, 3).double()
    for e in range(a.edges):
        u, v = a.source[e], a.target[e]
        inside = layer.matrix() @ h[u] + layer.target(x[v]) + layer.source(x[u])
        expected[v] += a.weight[e] * torch.tanh(inside + layer.edge.weight @ a.edge_x[e])
    assert_close(layer(h, x, adjacency), expected)


def test_layers_with_edges_equal_those_of_pytorch_geometric(drawn, pyg):
    edges, features, x = drawn
    adjacency = Adjacency.of(edges, 8, edge_x=features)
    gat = GATConv(4, 3, heads=2, edges=2).double()
    theirs = pyg.GATConv(4, 3, heads=2, edge_dim=2).double()
    pairs = {
        "lin.weight": gat.weight.T,
        "att_src": gat.source_score[None],
        "att_dst": gat.target_score[None],
        "lin_edge.weight": gat.edge.weight,
        "att_edge": gat.edge_score[None],
        "bias": gat.bias,
    }
    theirs.load_state_dict({name: value.detach() for name, value in pairs.items()})
    assert_close(gat(x, adjacency), theirs(x, edges, features), atol=1e-6, rtol=0)
    theirs = pyg.GINEConv(nn.Linear(4, 3), edge_dim=2).double()
    edge = edge_map(2, 4).double()
    theirs.lin.weight.data.copy_(edge.weight)
    theirs.lin.bias.data.zero_()
    gin = GINConv(theirs.nn, edge=edge)
    assert_close(gin(x, adjacency), theirs(x, edges, features), atol=1e-6, rtol=0)


def test_networks_with_edges_are_those_named():
    assert [n for n, made in NETWORKS.items() if "edges" in made.__init__.__kwdefaults__] == (
        WITH_EDGES
    )


@pytest.mark.parametrize("name", WITH_EDGES)
def test_every_network_sees_edges_whatever_the_order_of_nodes(name, drawn):
    edges, features, x = drawn
    torch.manual_seed(0)
    net = NETWORKS[name](4, 3, hidden=8, edges=2).double().eval()
    out = net(x, Adjacency.of(edges, 8, edge_x=features))
    order = torch.randperm(8)
    place = order.argsort()
    turned = net(x[order], Adjacency.of(place[edges], 8, edge_x=features))
    assert_close(turned, out[order], atol=1e-5, rtol=1e-5)  # scarselli iterates
    assert (net(x, Adjacency.of(edges, 8, edge_x=features + 1)) - out).abs().max() > 1e-3
    with pytest.raises(InvalidData, match="needs them; got a graph without"):
        net(x, Adjacency.of(edges, 8))


def marked(nodes=200):
    """Each node listens to four others; one of the edges is marked, and its colour is the class."""
    rng = np.random.default_rng(0)
    heard = np.stack([rng.permutation(nodes - 1)[:4] for _ in range(nodes)])
    heard += heard >= np.arange(nodes)[:, None]
    edges = np.stack([heard.ravel(), np.repeat(np.arange(nodes), 4)], axis=1)
    colour = rng.choice([-1.0, 1.0], nodes)
    marks = np.tile([5.0, 3.0, 3.0, 3.0], nodes)
    return Graph(edges, colour[:, None], colour[heard[:, 0]] > 0, directed=True, edge_x=marks)


@pytest.mark.parametrize("network", ["sage", "gat", "gin", "nn4g", "gated"])
def test_only_the_mark_on_an_edge_says_who_counts(network):
    graph = marked()
    settings = {"hidden": 16, "heads": 2, "epochs": 60, "lr": 3e-2, "dropout": 0.0, "l2": 0.0}
    model = NodeClassifier(network=network, **settings, random_state=0, training=QUIET)
    assert model.fit(graph[:140]).score(graph[140:]) > 0.85
    bare = Graph(graph.edges, graph.x, graph.y, directed=True)
    assert model.fit(bare[:140]).score(bare[140:]) < 0.75


def test_a_model_with_edges_is_saved_and_asks_for_them_again(tmp_path):
    graph = marked(60)
    model = NodeClassifier(network="sage", hidden=4, epochs=3, random_state=0, training=QUIET)
    found = model.fit(graph).predict_proba(graph)
    save(model, tmp_path / "model")
    assert np.array_equal(load(tmp_path / "model").predict_proba(graph), found)
    bare = Graph(graph.edges, graph.x, directed=True)
    with pytest.raises(InvalidData, match="edges must have 1 features, as in fit; got none"):
        model.predict(bare)
    wide = Graph(graph.edges, graph.x, directed=True, edge_x=np.ones((len(graph.edges), 2)))
    with pytest.raises(InvalidData, match="edges must have 1 features, as in fit; got 2"):
        model.predict(wide)
    both = Graph(graph.edges[::4], graph.x, graph.y, edge_x=graph.edge_x[::4])
    with pytest.warns(DataWarning, match="'chebyshev' knows edges by their weights only"):
        NodeClassifier(network="chebyshev", hidden=4, epochs=1, training=QUIET).fit(both)


def test_edges_of_packed_sampled_and_held_out_graphs_keep_their_features(drawn):
    edges, features, x = drawn
    adjacency = Adjacency.of(edges, 8, features[:, 0].abs() + 1, edge_x=features)
    part = NeighbourRows(PackedGraph(x, adjacency), torch.arange(8), (8, 8)).take(torch.tensor([0]))
    known = {
        (x[u, 0].item(), x[v, 0].item()): e
        for (u, v), e in zip(edges.T.tolist(), features, strict=True)
    }
    a = part.adjacency
    for u, v, e, w in zip(a.source, a.target, a.edge_x, a.weight, strict=True):
        assert torch.equal(e, known[part.x[u, 0].item(), part.x[v, 0].item()])
        assert w == e[0].abs() + 1
    bonds = [Graph([(0, 1), (1, 2)], edge_x=[[k], [1 - k]]) for k in (0, 1)] * 12
    ring = [Graph([(0, 1), (1, 2)], edge_x=[[k], [k]]) for k in (0, 1)] * 12
    graphs = Graphs(bonds + ring, np.repeat([0, 1], 24))
    model = GraphClassifier(hidden=8, depth=2, epochs=40, dropout=0.0, random_state=0)
    model.training = QUIET
    assert model.fit(graphs).score(graphs, graphs.y) == 1.0  # alike but for their bonds
    links = Graph(edges.T.numpy(), x.numpy(), directed=True, edge_x=features.numpy())
    LinkPredictor(hidden=4, epochs=2, random_state=0, training=Training(watch=False)).fit(links)


def test_files_of_the_tu_collection_and_networkx_have_edges_too(tmp_path):
    texts = {
        "A": "1, 2\n2, 1\n2, 3\n3, 2\n4, 5\n5, 4\n",
        "graph_indicator": "1\n1\n1\n2\n2\n",
        "graph_labels": "1\n-1\n",
        "edge_labels": "0\n0\n2\n2\n1\n1\n",
        "edge_attributes": "0.5\n0.5\n1.5\n1.5\n2.5\n2.5\n",
    }
    for name, text in texts.items():
        (tmp_path / f"D_{name}.txt").write_text(text)
    first, second = read_graphs(tmp_path)
    assert first.edge_x.tolist() == [[1, 0, 0, 0.5], [0, 0, 1, 1.5]]
    assert second.edge_x.tolist() == [[0, 1, 0, 2.5]]
    networkx = pytest.importorskip("networkx")
    drawn = networkx.Graph()
    drawn.add_edge("a", "b", weight=2.0, length=3.0, kind="road")
    drawn.add_edge("b", "c", weight=1.0, length=4.0, kind="road")
    model = NodeClassifier(epochs=1, training=QUIET).fit(drawn, [0, 1, 1])
    assert model.adapter_.edges.width == 1


@pytest.mark.parametrize(
    ("edge_x", "says"),
    [
        ([1.0], "a row for each of the 2 edges; got shape \\(1, 1\\)"),
        ([1.0, np.nan], "no NaN or infinity, first for edge 1"),
    ],
)
def test_bad_features_of_edges(edge_x, says):
    with pytest.raises(InvalidData, match=says):
        Graph([(0, 1), (1, 2)], edge_x=edge_x)


def test_graphs_must_agree_about_edges():
    graphs = [Graph([(0, 1)], edge_x=[1.0]), Graph([(0, 1)])]
    with pytest.raises(InvalidData, match="of graph 1 have 0, of the first 1"):
        GraphClassifier(epochs=1).fit(graphs, [0, 1])


@pytest.mark.parametrize("method", ["gradients", "mask"])
def test_reasons_name_the_edge_that_decided(method):
    graph = marked(80)
    model = NodeClassifier(
        network="sage", hidden=16, epochs=60, lr=3e-2, dropout=0.0, random_state=0, training=QUIET
    ).fit(graph)
    into = {v: graph.edges[4 * v].tolist() for v in range(len(graph))}
    right = [model.explain(graph, v, method=method).edges[0].tolist() == into[v] for v in range(4)]
    assert all(right)  # of many edges within two hops
    shares = model.explain(graph, 0, method="mask", steps=20).edge_shares
    assert (shares <= 1).all()
    with pytest.raises(InvalidParameter, match="Did you mean `mask`"):
        model.explain(graph, 0, method="masks")
