"""Graphs from files: edge lists with node tables, arrays, TU folders; and their profile."""

import numpy as np
import pytest

import castalia
from castalia.data import Graph, graph_profile, read_graph, read_graphs
from castalia.errors import InvalidData


@pytest.fixture
def files(tmp_path):
    (tmp_path / "edges.csv").write_text("source,target,weight,since\na,b,2.0,1990\nb,c,1.0,1991\n")
    (tmp_path / "nodes.csv").write_text("id,age,job,label\nc,3,x,no\na,1,y,yes\nb,2,x,\n")
    return tmp_path


def test_a_list_of_edges_and_a_table_of_nodes_make_a_graph(files):
    graph = castalia.read(files / "edges.csv", nodes=files / "nodes.csv", target="label")
    assert isinstance(graph, Graph)
    assert graph.ids.tolist() == ["c", "a", "b"]
    assert graph.scipy().toarray().tolist() == [[0, 0, 1], [0, 0, 2], [1, 2, 0]]
    assert graph.x.columns == ["age", "job"]
    assert graph.y.tolist() == ["no", "yes", None]
    assert graph.edge_x.ravel().tolist() == [1990, 1991]


def test_edges_alone_name_their_nodes(tmp_path):
    (tmp_path / "edges.tsv").write_text("x\ty\n1\t2\n2\t0\n")
    graph = read_graph(tmp_path / "edges.tsv", directed=True)
    assert graph.directed
    assert graph.edges.tolist() == [[1, 2], [2, 0]]


def test_faults_of_files_are_named(files, tmp_path):
    with pytest.raises(InvalidData, match="must have the target `lable`.*Did you mean `label`"):
        read_graph(files / "edges.csv", files / "nodes.csv", target="lable")
    (tmp_path / "one.csv").write_text("a\n1\n")
    with pytest.raises(InvalidData, match="two columns at least"):
        read_graph(tmp_path / "one.csv")
    np.savez(tmp_path / "bare.npz", x=np.ones(3))
    with pytest.raises(InvalidData, match="must hold an array `edges`"):
        read_graph(tmp_path / "bare.npz")
    with pytest.raises(InvalidData, match="NAME_graph_indicator"):
        read_graphs(tmp_path)
    (files / "edges.csv").write_text("source,target\na,z\n")
    with pytest.raises(InvalidData, match="got 1 unknown node, first 'z', in 1 edge"):
        read_graph(files / "edges.csv", files / "nodes.csv")


def test_arrays_make_a_graph(tmp_path):
    np.savez(tmp_path / "g.npz", edges=[[0, 1]], x=np.eye(3), y=[0, 1, 1])
    graph = read_graph(tmp_path / "g.npz")
    assert len(graph) == 3
    assert graph.y.tolist() == [0, 1, 1]


def test_a_folder_of_the_tu_collection_is_many_graphs(tmp_path):
    (tmp_path / "MINI_A.txt").write_text("1, 2\n2, 1\n3, 4\n4, 3\n4, 5\n5, 4\n")
    (tmp_path / "MINI_graph_indicator.txt").write_text("1\n1\n2\n2\n2\n")
    (tmp_path / "MINI_graph_labels.txt").write_text("-1\n1\n")
    (tmp_path / "MINI_node_labels.txt").write_text("0\n2\n2\n0\n2\n")
    graphs = castalia.read(tmp_path)
    assert [len(graph) for graph in graphs] == [2, 3]
    assert graphs[1].edges.tolist() == [[0, 1], [1, 2]]
    assert graphs[1].x.tolist() == [[0, 1], [1, 0], [0, 1]]
    assert graphs.y.tolist() == [-1, 1]


def test_graphml_is_read_by_networkx(tmp_path):
    networkx = pytest.importorskip("networkx")
    drawn = networkx.path_graph(3)
    networkx.set_node_attributes(drawn, {0: 1.0, 1: 2.0, 2: 3.0}, "size")
    networkx.write_graphml(drawn, tmp_path / "path.graphml")
    graph = castalia.read(tmp_path / "path.graphml")
    assert graph.ids.tolist() == ["0", "1", "2"]
    assert graph.x.ravel().tolist() == [1, 2, 3]


def test_a_profile_counts_what_matters():
    x = np.array([[1.0], [1.0], [2.0], [3.0], [4.0]])
    graph = Graph([(0, 2), (1, 2), (3, 3)], x, ["a", "a", "b", "b", None])
    found = graph_profile(graph)
    assert (found.nodes, found.edges, found.components, found.isolated, found.loops) == (
        5,
        3,
        3,
        1,
        1,
    )
    assert (found.degree_largest, found.twins) == (2, 1)  # 0 and 1 have the same neighbours
    assert found.homophily == 1 / 3
    assert found.expected == 0.5
