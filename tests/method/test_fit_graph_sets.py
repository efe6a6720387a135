"""`castalia fit folder/ --target label`: GraphML files and TU folders, colour counts, drawings."""

import numpy as np
import pytest

import castalia
from castalia.data import Graph, Graphs
from castalia.errors import InvalidData, InvalidParameter
from castalia.method import FitPlan, evaluate, predict, run
from castalia.method.graphs.graph_baselines import ColourCounts, GraphSummaries
from castalia.method.report import render
from castalia.testing import toy

networkx = pytest.importorskip("networkx")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("graphs")
    graphs, kinds = (part[:40] for part in toy("rings"))
    for number, (graph, kind) in enumerate(zip(graphs, kinds, strict=True)):
        made = networkx.Graph(graph.edges.tolist(), label="ring" if kind else "tree")
        for node in made:
            made.nodes[node]["element"] = "CN"[node % 2]
        networkx.write_graphml(made, place / f"g{number:02d}.graphml")
    return place


@pytest.fixture(scope="module")
def fitted(folder, tmp_path_factory):
    return run(
        FitPlan(
            data=str(folder),
            target="label",
            run=str(tmp_path_factory.mktemp("run") / "run"),
            seeds=1,
            boosting_rounds=5,
            settings={"epochs": 10, "hidden": 8, "depth": 2},
        )
    )


def test_graphs_are_fitted_beside_counts_of_colours(fitted):
    found = {c.name: c.scores["accuracy"] for c in fitted.report.contenders}
    assert list(found)[:3] == ["Guessing", "Boosting, sizes and means", "Weisfeiler–Lehman, linear"]
    assert found["Weisfeiler–Lehman, linear"] > 0.8
    page = render(fitted.report)
    assert "Some of the graphs" in page
    assert "<svg" in page.split("Some of the graphs")[1][:2000]


def test_every_contender_answers_the_folder_again(fitted, folder):
    for name in ("model", "colours", "boosting"):
        found = predict(fitted.folder, str(folder), name=name)
        assert found.columns["graph"][:2].tolist() == ["g00", "g01"]
        assert set(found.columns["prediction"]) <= {"ring", "tree"}
    assert evaluate(fitted.folder, str(folder), name="colours").scores["accuracy"] > 0.8


def test_words_of_nodes_are_categories_learnt_from_all_graphs(folder):
    graphs = castalia.read(folder, target="label")
    assert set(graphs.y) == {"ring", "tree"}
    assert graphs[0].x.columns == ["element"]
    model = castalia.GraphClassifier(hidden=4, depth=1, epochs=1, random_state=0)
    first = Graphs([Graph([], [[0.0]]), *graphs.graphs[1:]])
    assert model.fit(graphs, graphs.y).predict(graphs[:3]).shape == (3,)
    assert model.adapter_.categories == (3,)
    with pytest.raises(InvalidData, match="the same features"):
        model.fit(first, graphs.y)


def test_targets_may_stand_in_a_table_beside_the_files(folder, tmp_path):
    for number in range(12):
        name = f"g{number:02d}.graphml"
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    with pytest.raises(InvalidData, match="attribute `size`.*the attributes are `label`"):
        castalia.read(tmp_path, target="size")
    rows = "".join(f"g{k:02d}.graphml,{k / 7:.3f}\n" for k in range(11, 0, -1))
    (tmp_path / "sizes.csv").write_text(f"file,size\n{rows}")
    with pytest.raises(InvalidData, match="must name every file .* g00.graphml and 0 others"):
        castalia.read(tmp_path, target="size")
    (tmp_path / "sizes.csv").write_text(f"file,size\ng00.graphml,9\n{rows}")
    found = castalia.read(tmp_path, target="size")
    assert found.y[:3].tolist() == [9, 0.143, 0.286]
    (tmp_path / "g03.graphml").write_text("<graphml")
    with pytest.raises(InvalidData, match="g03.graphml must be GraphML"):
        castalia.read(tmp_path, target="size")


def test_colours_are_those_of_the_test_of_weisfeiler_and_lehman():
    six = Graph([(i, (i + 1) % 6) for i in range(6)])
    triangles = Graph([(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)])
    path = Graph([(i, i + 1) for i in range(5)])
    shuffled = Graph([(i, (i + 2) % 6) for i in range(6)] + [(0, 1)], nodes=np.arange(6))
    counts = ColourCounts().fit(Graphs([six, six, path, path, shuffled, shuffled]))
    a, b, c, d = counts.encode(Graphs([six, triangles, path, shuffled]))
    assert np.array_equal(a, b)  # as the test says, wrongly
    assert not np.array_equal(a, c)
    assert not np.array_equal(a, d)
    again = ColourCounts.from_state(counts.state())
    assert np.array_equal(again.encode(Graphs([path]))[0], c)
    assert GraphSummaries().encode(Graphs([path]))[0].tolist()[:3] == [6, 5, 10 / 6]


def test_what_graphs_cannot_have_is_refused(folder):
    with pytest.raises(InvalidParameter, match="`nodes` must be None for graphs"):
        run(FitPlan(data=Graphs([Graph([(0, 1)])], [1]), target="y", nodes="n.csv", links=False))
    with pytest.raises(InvalidData, match="10 graphs at least to train and test; got 1"):
        run(FitPlan(data=Graphs([Graph([(0, 1)])], [1]), target="y"))
    with pytest.raises(InvalidParameter, match="--set network=gat"):
        run(FitPlan(data=str(folder), target="label", model="mlp"))
