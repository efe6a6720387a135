"""`castalia fit edges.csv --links`: hidden links, shared neighbours, pairs that are asked for."""

import numpy as np
import pytest

from castalia.data import Graph
from castalia.errors import InvalidData, InvalidParameter
from castalia.method import FitPlan, evaluate, predict, run
from castalia.method.graphs.hidden_links import HiddenLinks, candidates, pairs_apart
from castalia.method.graphs.pair_baselines import SharedNeighbours
from castalia.method.report import render
from castalia.testing import toy

PATH = Graph([(0, 1), (1, 2), (2, 3), (3, 0), (3, 4), (4, 4)])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("links")
    X, y = toy("blocks")
    edges = np.concatenate([X.graph.edges, X.index[y == 1]])
    rows = "".join(f"n{u},n{v}\n" for u, v in edges)
    (folder / "edges.csv").write_text(f"source,target\n{rows}")
    pairs = "".join(f"n{u},n{v},{k}\n" for (u, v), k in zip(X.index[:40], y, strict=False))
    (folder / "pairs.csv").write_text(f"source,target,link\n{pairs}")
    return folder


@pytest.fixture(scope="module")
def fitted(files):
    return run(
        FitPlan(
            data=str(files / "edges.csv"),
            links=True,
            run=str(files / "run"),
            seeds=1,
            settings={"epochs": 30, "hidden": 16},
        )
    )


def test_links_are_fitted_beside_the_neighbours_that_nodes_share(fitted):
    found = {c.name: c.scores["roc_auc"] for c in fitted.report.contenders}
    assert list(found)[:3] == ["Guessing", "Common neighbours", "Adamic–Adar"]
    assert found["Guessing"] == 0.5
    assert min(found["Common neighbours"], found["Adamic–Adar"], found["LinkPredictor"]) > 0.85
    assert "--links" in fitted.report.reproduce
    page = render(fitted.report)
    assert "hidden links were found" in page
    assert "Links that may be missing" in page


def test_every_contender_answers_pairs_and_names_likely_links(fitted, files):
    data = [str(files / "edges.csv"), str(files / "pairs.csv")]
    for name in ("model", "common", "adamic"):
        found = predict(str(files / "run"), data, name=name).columns
        assert len(found["probability"]) == 40
        assert found["source"][0].startswith("n")
    likely = predict(str(files / "run"), data[:1], name="adamic")
    assert "share neighbours" in likely.notes[0]
    assert len(likely) > 100
    score = evaluate(str(files / "run"), data, name="adamic")
    assert score.scores["roc_auc"] > 0.85


def test_tested_links_are_not_in_the_graph_that_passes_messages():
    rows = HiddenLinks(PATH, pairs_apart(PATH, 3, seed=0))
    assert rows.y.tolist() == [1] * 5 + [0] * 3  # a loop is no row
    rows.tests = [np.array([0, 1, 6]), np.array([4, 7])]
    hidden = [{(0, 1), (1, 2)}, {(3, 4)}]
    for test, gone in zip(rows.tests, hidden, strict=True):
        train = np.setdiff1d(np.arange(8), test)
        for part in (rows.take(test), rows.take(train)):
            left = {*map(tuple, part.graph.edges.tolist())}
            assert left == {*map(tuple, PATH.edges.tolist())} - gone
    assert rows.take(np.arange(8)).graph is PATH


def test_shared_neighbours_are_counted_and_rare_ones_count_more():
    pairs = PATH.pairs([(0, 2), (1, 3), (0, 4)])
    assert np.expm1(SharedNeighbours().encode(pairs)).ravel() == pytest.approx([2, 2, 1])
    rare = np.expm1(SharedNeighbours(rare=True).encode(pairs)).ravel()
    expected = [1 / np.log(2) + 1 / np.log(3), 2 / np.log(2), 1 / np.log(3)]
    assert rare == pytest.approx(expected)
    assert {*map(tuple, candidates(PATH, 10).tolist())} == {(0, 2), (1, 3), (0, 4), (2, 4)}


def test_drawn_pairs_have_no_edge_and_are_as_many_as_there_are():
    found = pairs_apart(PATH, 100, seed=1)
    assert {*map(tuple, found.tolist())} == {(0, 2), (1, 3), (0, 4), (1, 4), (2, 4)}


def test_what_links_cannot_have_is_refused(tmp_path):
    (tmp_path / "few.csv").write_text("a,b\nx,y\ny,z\nz,z\n")
    with pytest.raises(InvalidData, match="10 edges between two nodes at least; got 2"):
        run(FitPlan(data=str(tmp_path / "few.csv"), links=True))
    with pytest.raises(InvalidParameter, match="`target` must be None for links of a graph"):
        run(FitPlan(data=str(tmp_path / "few.csv"), links=True, target="a"))
    full = "".join(f"{u},{v}\n" for u in range(6) for v in range(u))
    (tmp_path / "full.csv").write_text(f"a,b\n{full}")
    with pytest.raises(InvalidData, match="10 pairs of nodes without an edge .*; got 0"):
        run(FitPlan(data=str(tmp_path / "full.csv"), links=True))
