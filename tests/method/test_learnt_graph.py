"""A Bayesian network in the practical method: fitted from a table as it is, and drawn."""

import numpy as np
import pandas as pd
import pytest

from castalia.method import FitPlan
from castalia.method.flow import run
from castalia.method.kinds import Asked
from castalia.method.kinds.table_kind import Table
from castalia.method.report import RunReport, render
from castalia.method.saved_model import load_model, unseen_categories, used_columns


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fit")
    random = np.random.default_rng(0)
    rain = random.random(240) < 0.4
    wet = np.where(random.random(240) < 0.1, ~rain, rain)
    rows = pd.DataFrame({"sky": np.where(rain, "grey", "blue"), "noise": random.normal(size=240)})
    rows["grass"] = np.where(wet, "wet", "dry")
    rows.loc[:9, "sky"] = None
    rows.to_csv(folder / "lawn.csv", index=False)
    plan = FitPlan(
        data=str(folder / "lawn.csv"),
        target="grass",
        model="bayesian-network",
        run=str(folder / "run"),
        seeds=1,
        boosting_rounds=2,
        preflight_seconds=0,
        verbose=False,
    )
    return run(plan)


def test_the_report_draws_the_graph_that_was_learnt(finished):
    model = load_model(finished.folder, "BayesianNetwork")
    assert model.target_ == "grass"
    assert {frozenset(edge) for edge in model.edges_} == {frozenset(("sky", "grass"))}
    assert finished.report.graph == {k: list(v) for k, v in model.parents_.items()}
    page = render(finished.report)
    assert "The graph that was learnt" in page
    assert "1 edge: given its parents" in page
    assert "The graph that was learnt" not in render(RunReport("t", "classification", "y"))


def test_the_saved_network_answers_tables_with_words_and_gaps(finished):
    model = load_model(finished.folder, "BayesianNetwork")
    assert used_columns(model) == ["sky", "noise"]
    new = pd.DataFrame({"noise": [0.1, np.nan, 0.3], "sky": ["grey", "blue", "green"]})
    rows = Table.new_rows(model, [new], Asked())
    assert unseen_categories(model, rows.X)[0].startswith("Column `sky` holds values unseen")
    with pytest.warns(UserWarning, match="`sky` holds states that fit has not seen"):
        assert Table.answers(model, rows.X)["prediction"].tolist()[:2] == ["wet", "dry"]
