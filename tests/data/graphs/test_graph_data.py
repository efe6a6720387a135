"""Graphs as people have them: what is kept, what is refused, and in which words."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.sparse import coo_array, csr_array

from castalia.data import Graph, Graphs
from castalia.data.graphs import GraphSetAdapter, LinkAdapter, NeighbourRows, NodeAdapter, as_graph
from castalia.data.graphs.neighbour_rows import sampled_edges
from castalia.errors import DataWarning, InvalidData
from castalia.nn.graph import Adjacency, PackedGraph


def test_edges_are_kept_once_and_go_both_ways_unless_directed():
    graph = Graph([(0, 1), (1, 0), (1, 2)])
    assert graph.edges.tolist() == [[0, 1], [1, 2]]
    assert graph.repeated == 0
    assert graph.scipy().toarray().tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    directed = Graph([(0, 1), (1, 0), (1, 2)], directed=True)
    assert directed.scipy().toarray().tolist() == [[0, 1, 0], [1, 0, 0], [0, 1, 0]]


def test_names_weights_and_features_belong_to_their_nodes_and_edges():
    graph = Graph(
        [("b", "a"), ("c", "b")],
        [[1.0], [2.0], [3.0]],
        weight=[5.0, 7.0],
        edge_x=[[0.5], [0.25]],
        nodes=["c", "a", "b"],
    )
    assert graph.scipy().toarray().tolist() == [[0, 0, 7], [0, 0, 5], [7, 5, 0]]
    assert graph.positions(["a", "c"]).tolist() == [1, 0]
    assert graph.x.shape == (3, 1)
    assert graph.edge_x.shape == (2, 1)
    assert graph.pairs([("a", "c")]).index.tolist() == [[1, 0]]


def test_edges_given_twice_are_said_and_counted_once():
    with pytest.warns(DataWarning, match="2 of 4 edges are given more than once"):
        graph = Graph([(0, 1), (0, 1), (0, 1), (1, 2)])
    assert len(graph.edges) == 2
    assert graph.repeated == 2


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda: Graph([(0, 5)], [[1.0], [2.0]]),
            "nodes 0 to 1.*got 1 unknown node, first 5, in 1 edge",
        ),
        (lambda: Graph([("a", "x")], nodes=["a", "b"]), "got 1 unknown node, first 'x', in 1 edge"),
        (lambda: Graph([(0, -1)]), "must be at least 0; got -1"),
        (lambda: Graph([]), "must have a node; got none"),
        (lambda: Graph([(0, 1)], nodes=[0, 1, 1]), "name each node once; got 1 more than once"),
        (lambda: Graph([(0, 1)], [[1.0], [np.nan]]), "no NaN or infinity, first for node 1"),
        (lambda: Graph([(0, 1)], [["a"], ["b"]]), "`x` must hold numbers"),
        (lambda: Graph([(0, 1, 2)]), r"of shape \(E, 2\); got \(1, 3\)"),
        (lambda: Graph([(0.5, 1)]), "not whole"),
        (lambda: Graph([(0, 1)], weight=[0.0]), "above 0; got 0"),
        (lambda: Graph([(0, 1)], weight=[1.0, 2.0]), "each of the 1 edges"),
        (lambda: Graph([(0, 1)], edge_x=[[1.0], [2.0]]), "`edge_x` must have a row"),
        (lambda: Graph([(0, 1)], [[1.0], [1.0]], [0, 1, 1]), "`y` must have a row for each of"),
        (lambda: Graph([("a", "b")], [[1.0]]), "`nodes` must name the 1 rows of x and y"),
        (lambda: Graph([(0, 1)]).positions([7]), "has no node 7"),
        (lambda: Graphs([Graph([(0, 1)])], [1, 2]), "each of the 1 graphs; got 2"),
        (lambda: as_graph(np.eye(3), "NodeClassifier"), "NodeClassifier: X must be a graph .*got"),
        (lambda: as_graph(coo_array((2, 3))), "must be square"),
        (lambda: LinkAdapter().check(Graph([], nodes=[0, 1]), "L"), "must have edges"),
        (lambda: GraphSetAdapter().check([], "G"), "must hold a graph"),
        (
            lambda: GraphSetAdapter().check([Graph([(0, 1)]), Graph([(0, 1)], [[1.0]] * 2)], "G"),
            "graph 1 is",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_sentence(make, said):
    with pytest.raises(InvalidData, match=said):
        make()


def test_graphs_without_edges_and_nodes_without_any_are_graphs():
    graph = Graph([], np.ones((3, 2)))
    assert graph.degrees.tolist() == [0, 0, 0]
    assert (graph.adjacency @ torch.ones(3, 2)).sum() == 0


def test_matrices_and_graphs_of_other_libraries_are_taken_as_they_are():
    matrix = csr_array([[0, 2, 0], [2, 0, 1], [0, 1, 0]])
    assert as_graph(matrix).scipy().toarray().tolist() == matrix.toarray().tolist()
    data = SimpleNamespace(
        edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]),
        num_nodes=4,
        x=torch.ones(4, 2),
        y=torch.tensor([0, 1, 0, 1]),
    )
    graph = as_graph(data)
    assert not graph.directed
    assert len(graph.edges) == 2
    assert len(graph) == 4
    nx = pytest.importorskip("networkx")
    other = nx.Graph([("ann", "bob"), ("bob", "cem")])
    nx.set_node_attributes(other, {"ann": 1, "bob": 2, "cem": 3}, "age")
    nx.set_node_attributes(other, {"ann": "x", "bob": "y"}, "label")
    found = as_graph(other)
    assert found.ids.tolist() == ["ann", "bob", "cem"]
    assert found.x.ravel().tolist() == [1, 2, 3]
    assert found.y.tolist() == ["x", "y", None]


def test_features_are_scaled_as_was_learnt():
    x = np.array([[2.0, 0, 0, 0], [0, 1, 0, 3], [0, 0, 0, 0]])
    graph = Graph([(0, 1)], x)
    adapter = NodeAdapter().fit(graph[:])
    assert adapter.features.scaling == "rows"
    encoded = adapter.rows(graph[:], np.float64).graph.x
    assert np.allclose(encoded.numpy(), [[1, 0, 0, 0], [0, 0.25, 0, 0.75], [0, 0, 0, 0]])
    dense = Graph([(0, 1)], np.array([[1.0], [3.0], [8.0]]))
    adapter = NodeAdapter().fit(dense[:])
    encoded = adapter.rows(dense[:], np.float64).graph.x.numpy()
    assert adapter.features.scaling == "columns"
    assert abs(encoded.mean()) < 1e-12
    with pytest.raises(InvalidData, match="nodes must have 1 features, as in fit; got 4"):
        adapter.check(graph, "N")


def test_nodes_without_features_are_known_by_name():
    graph = Graph([("a", "b"), ("b", "c")])
    adapter = NodeAdapter().fit(graph[:])
    assert adapter.categories == (4,)
    assert adapter.inputs == 1
    with pytest.raises(InvalidData, match="must have been in the graph of fit.*got 'd' and 0"):
        adapter.check(Graph([("a", "d")]), "N")


def test_held_out_links_pass_no_messages():
    graph = Graph([(i, (i + 1) % 40) for i in range(40)])
    adapter = LinkAdapter()
    pairs = adapter.check(graph, "L")
    adapter.fit(pairs)
    from castalia.data.batches import Samples

    samples = Samples(adapter.rows(pairs, np.float32), torch.ones(40))
    kept, held = adapter.split(samples, 0.25, seed=0)
    hidden = {tuple(p) for p in held.batch(held.rows).x.rows.tolist()}
    edges = kept.x.graph.adjacency
    left = {*zip(edges.source.tolist(), edges.target.tolist(), strict=True)}
    assert len(hidden) == 10
    assert edges.edges == 60
    assert not left & (hidden | {(v, u) for u, v in hidden})


def star(leaves):
    here = torch.arange(1, leaves + 1)
    return Adjacency.of(torch.stack([here, torch.zeros_like(here)]), leaves + 1)


def test_each_neighbour_is_drawn_as_often_and_none_twice():
    torch.manual_seed(0)
    graph, counts = star(7), torch.zeros(8)
    for _ in range(2000):
        drawn = sampled_edges(graph, torch.tensor([0]), 3)
        assert len(drawn.unique()) == 3
        counts[graph.source[drawn]] += 1
    assert (counts[1:] / 2000 - 3 / 7).abs().max() < 0.04
    assert sampled_edges(graph, torch.tensor([0, 1]), 9).shape == (7,)  # all there are


def test_a_sample_of_all_neighbours_gives_the_states_of_the_whole_graph():
    torch.manual_seed(0)
    a = (torch.rand(12, 12) < 0.3).triu(1)
    edges = torch.cat([a.nonzero().T, a.nonzero().T.flip(0)], dim=1)
    graph = PackedGraph(torch.randn(12, 3), Adjacency.of(edges, 12))
    part = NeighbourRows(graph, torch.arange(12), (12, 12)).take(torch.tensor([4, 9]))
    mean = graph.adjacency.averaged()
    whole = (mean @ (mean @ graph.x))[[4, 9]]
    inner = part.adjacency.averaged()
    found = (inner @ (inner @ part.x))[part.rows]
    torch.testing.assert_close(found, whole)
