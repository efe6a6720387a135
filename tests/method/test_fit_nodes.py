"""`castalia fit edges.csv --nodes nodes.csv --target label`: baselines, network, answers."""

import numpy as np
import pytest

from castalia.data.graphs import GraphNodes
from castalia.errors import InvalidData, InvalidParameter
from castalia.method import FitPlan, predict, run
from castalia.method.graphs.node_baselines import KnownLabels, NodeColumns, label_propagation
from castalia.method.saved_contender import load_contender
from castalia.testing import toy


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("graph")
    X, y = toy("communities")
    edges = "".join(f"n{u},n{v}\n" for u, v in X.graph.edges)
    (folder / "edges.csv").write_text(f"source,target\n{edges}")
    rows = [
        f"n{i},{x[0]:.3f},{x[1]:.3f},{'xy'[i % 2]},{y[i] if i < 150 else ''}\n"
        for i, x in enumerate(X.graph.x)
    ]
    (folder / "nodes.csv").write_text(f"id,a,b,job,label\n{''.join(rows)}")
    return folder


@pytest.fixture(scope="module")
def fitted(files):
    return run(
        FitPlan(
            data=str(files / "edges.csv"),
            nodes=str(files / "nodes.csv"),
            target="label",
            run=str(files / "run"),
            seeds=1,
            boosting_rounds=5,
            settings={"epochs": 30, "hidden": 8},
        )
    )


def test_nodes_are_fitted_beside_what_knows_edges_or_features_alone(fitted):
    names = {c.name: c.scores["accuracy"] for c in fitted.report.contenders}
    assert list(names)[:4] == [
        "Guessing",
        "Features alone, linear",
        "Label propagation",
        "Boosting, neighbours",
    ]
    assert names["NodeClassifier"] > names["Features alone, linear"] > names["Guessing"] - 0.1
    assert names["Label propagation"] > 0.9
    assert any("10 nodes without a target" in note for note in fitted.summary["notes"])


def test_every_contender_answers_files_again(fitted, files):
    data = [str(files / "edges.csv"), str(files / "nodes.csv")]
    for name in ("model", "linear", "labels", "boosting"):
        found = predict(str(files / "run"), data, name=name)
        assert len(found.columns["prediction"]) == 160
        assert set(found.columns["prediction"]) <= {"red", "blue"}


def test_saved_labels_and_columns_give_the_same_rows(fitted, files):
    X, y = toy("communities")
    view = GraphNodes(X.graph.renamed([f"n{i}" for i in range(160)]), np.arange(60))
    model = label_propagation(view, y[:60], seed=0)
    again = KnownLabels.from_state(model.features.state())
    assert np.array_equal(again.encode(view), model.features.encode(view))
    assert (model.predict(view) == y[:60]).mean() > 0.9
    saved = load_contender(files / "run" / "contenders" / "boosting")
    assert isinstance(saved.features, NodeColumns)
    assert saved.features.neighbours


def test_what_nodes_cannot_have_is_refused(files):
    base = {"data": str(files / "edges.csv"), "nodes": str(files / "nodes.csv")}
    with pytest.raises(InvalidParameter, match="must name the column of the nodes"):
        run(FitPlan(**base))
    with pytest.raises(InvalidParameter, match="--set network=gat"):
        run(FitPlan(**base, target="label", model="mlp"))
    with pytest.raises(InvalidData, match="must have the target `lable`"):
        run(FitPlan(**base, target="lable"))
