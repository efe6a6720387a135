"""Bad input of graphs, as people give it: one clear sentence each."""

import numpy as np
import pytest

import castalia
from castalia.data import Graph, Graphs, graph_profile, read_graph
from castalia.errors import DataWarning, InvalidData
from castalia.models.graphs import GraphClassifier, LinkPredictor, NodeClassifier
from castalia.train import Training

QUIET = Training(watch=False, validation=0)
EDGES = "source,target\na,b\nb,c\nc,a\n"
NODES = "id,age,label\na,1,x\nb,2,y\nc,3,x\n"
FILES = {
    "an edge to an unknown node": (
        "source,target\na,b\nb,z\nz,a\n",
        NODES,
        "got 1 unknown node, first 'z', in 2",
    ),
    "an edge without a target": ("source,target\na,b\nb,\n", NODES, "`target` .* 1 of 2 are empty"),
    "a number that is missing": ("source,target\n1,2\n2,\n", None, "first in row 1. Drop those"),
    "a node without a name": (EDGES, "id,age,label\na,1,x\n,2,y\nc,3,x\n", "`id` .* 1 of 3"),
    "a repeated name": (EDGES, NODES + "b,9,x\n", "name each node once; got 'b' more than once"),
    "another target": (EDGES, NODES.replace("label", "lable"), "Did you mean `lable`"),
    "one column": ("source\na\n", None, "two columns at least"),
    "a weight below 0": ("source,target,weight\na,b,-1\nb,c,2\n", None, "above 0; got -1"),
}


@pytest.mark.parametrize("fault", FILES)
def test_faults_of_files_are_named(fault, tmp_path):
    edges, nodes, said = FILES[fault]
    (tmp_path / "edges.csv").write_text(edges)
    table = None
    if nodes is not None:
        table = tmp_path / "nodes.csv"
        table.write_text(nodes)
    with pytest.raises(InvalidData, match=said):
        read_graph(tmp_path / "edges.csv", table, target=None if nodes is None else "label")


def node_model(**settings):
    return NodeClassifier(hidden=4, epochs=1, training=QUIET, random_state=0, **settings)


def triangle(**parts):
    return Graph([(0, 1), (1, 2), (2, 0)], **{"x": np.eye(3), **parts})


FITS = {
    "no target at all": (lambda: node_model().fit(triangle(), [None] * 3), "for some nodes; got n"),
    "targets of fewer nodes": (
        lambda: node_model().fit(triangle(), [0, 1]),
        "3 nodes and 2 targets",
    ),
    "one class only": (lambda: node_model().fit(triangle(), ["a", None, "a"]), "one class"),
    "features of another width": (
        lambda: node_model().fit(triangle(), [0, 1, 1]).predict(triangle(x=np.ones((3, 2)))),
        "must have 3 features, as in fit; got 2",
    ),
    "no features any more": (
        lambda: node_model().fit(triangle(), [0, 1, 1]).predict(triangle(x=None)),
        "must have 3 features, as in fit; got none",
    ),
    "a node that was not there": (
        lambda: node_model().fit(triangle(x=None), [0, 1, 1]).predict(Graph([(0, 5)])),
        "must have been in the graph of fit.*Give features x",
    ),
    "one direction": (
        lambda: node_model(network="spectral").fit(triangle(directed=True), [0, 1, 1]),
        "needs an undirected graph.*directed=False",
    ),
    "one direction for polynomials": (
        lambda: node_model(network="chebyshev").fit(triangle(directed=True), [0, 1, 1]),
        "needs an undirected graph.*directed=False",
    ),
    "links of loops": (
        lambda: LinkPredictor().fit(Graph([(0, 0), (1, 1)], np.eye(3))),
        "got none but 2 loops",
    ),
    "a table": (lambda: node_model().fit(np.eye(3), [0, 1, 1]), "X must be a graph .*ndarray"),
    "a missing end": (lambda: Graph([("a", None)]), "one missing"),
    "links of no edges": (
        lambda: LinkPredictor().fit(Graph([], np.eye(3))),
        "must have edges between",
    ),
    "graphs described differently": (
        lambda: GraphClassifier(training=QUIET).fit([triangle(), triangle(x=None)], [0, 1]),
        "graph 1 is",
    ),
    "fewer classes than graphs": (lambda: Graphs([triangle()], [0, 1]), "1 graphs; got 2"),
}


@pytest.mark.parametrize("fault", FITS)
def test_faults_of_fits_are_named(fault):
    make, said = FITS[fault]
    with pytest.raises(InvalidData, match=said) as caught:
        make()
    assert str(caught.value).count(". ") <= 1  # what is wrong, and a remedy


def test_what_is_odd_but_usable_is_used_and_counted():
    with pytest.warns(DataWarning, match="1 of 4 edges are given more than once"):
        graph = Graph([(0, 1), (0, 1), (1, 2), (2, 2)], np.eye(5))
    found = graph_profile(graph)
    assert (found.loops, found.isolated, found.repeated, found.components) == (1, 2, 1, 3)
    assert node_model().fit(graph, [0, 1, -1, 1, 0]).predict(graph).shape == (5,)
    bare = Graph([], np.eye(3))
    assert node_model().fit(bare, [0, 1, 1]).predict(bare).shape == (3,)
    assert castalia.GraphClassifier(hidden=4, epochs=1, training=QUIET).fit(
        [bare, triangle()], [0, 1]
    ).predict([bare]).shape == (1,)
