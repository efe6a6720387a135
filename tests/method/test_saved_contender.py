"""Every contender of a run is saved, chosen by name, and loaded without running anything."""

import io
import zipfile

import numpy as np
import pandas as pd
import pytest
from tests.method.small import quick_plan, write_table

import castalia
from castalia.errors import CheckpointMismatch, DamagedFile, InvalidData, InvalidParameter
from castalia.method import evaluate, predict, run
from castalia.method.blend import Blend, blend_weights
from castalia.method.classic_model import ClassicModel
from castalia.method.kinds import open_data
from castalia.method.problem import pose_problem
from castalia.method.saved_contender import load_contender, save_blend
from castalia.method.saved_model import load_model
from castalia.serve.served_model import LoadedModel


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return write_table(tmp_path_factory.mktemp("data") / "fruit.csv")


@pytest.fixture(scope="module")
def finished(table, tmp_path_factory):
    return run(quick_plan(table, run=tmp_path_factory.mktemp("runs") / "fruit", seeds=1))


@pytest.fixture(scope="module")
def priced(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "price"
    return run(quick_plan(table, "price", run=folder, seeds=1))


@pytest.mark.parametrize("key, place", [("guess", 0), ("linear", 1), ("boosting", 2), ("model", 3)])
def test_a_saved_contender_scores_what_the_report_says(finished, priced, table, key, place):
    for found, target in ((finished, "kind"), (priced, "price")):
        fit = pose_problem(open_data(quick_plan(table, target, seeds=1)))
        test = fit.parts[0].test
        said = load_model(found.folder, key).predict(fit.kind.X.take(test))
        shown, truth = found.report.contenders[place].scores, fit.task.y[test]
        if target == "kind":
            assert shown["accuracy"] == pytest.approx(np.mean(said == truth))
        else:
            assert shown["mae"] == pytest.approx(np.abs(said - truth).mean(), rel=1e-5)


def test_the_recommended_contender_is_what_one_gets(priced, table):
    assert priced.summary["recommended"] == "linear"  # the price is a sum
    model = load_model(priced.folder)
    assert isinstance(model, ClassicModel)
    said = predict(priced.folder, table).columns["prediction"]
    named = predict(priced.folder, table, name="Ridge regression").columns["prediction"]
    network = predict(priced.folder, table, name="tabular").columns["prediction"]
    np.testing.assert_array_equal(said, named)
    assert np.abs(said - network).max() > 0.1
    assert evaluate(priced.folder, table).scores["r2"] > 0.95
    assert evaluate(priced.folder, table, name="guess").scores["r2"] < 0.1


def test_words_where_numbers_were_are_named_by_column_and_row(priced, table, tmp_path):
    words = tmp_path / "words.csv"
    lines = table.read_text().splitlines()
    words.write_text("\n".join([*lines[:2], "forty," + lines[2].partition(",")[2]]))
    with pytest.raises(InvalidData, match="`length` must hold numbers .* got 'forty' in row 1"):
        predict(priced.folder, words)


def test_a_run_is_served_by_its_recommended_contender(priced, table):
    served = LoadedModel(priced.folder)
    rows = pd.read_csv(table).astype(object).where(lambda cell: cell.notna(), None)
    found = served.predictor.answer(served.predictor.parse(rows.to_dict("records")))
    np.testing.assert_array_equal(
        found["prediction"], predict(priced.folder, table).columns["prediction"]
    )
    assert served.system == "Ridge"


def test_a_name_that_is_none_of_them_is_refused(finished, table):
    with pytest.raises(InvalidParameter, match="--model must be `guess`, `linear`, `boosting` or"):
        predict(finished.folder, table, name="forest")
    with pytest.raises(InvalidParameter, match="--model chooses among the models of a run"):
        predict(finished.model, table, name="boosting")


def test_a_file_with_other_types_is_refused_before_it_is_made(finished, tmp_path):
    import shutil

    from skops.io import dumps

    class Evil:
        made = False

        def __setstate__(self, state):
            Evil.made = True

    Evil.__module__, Evil.__qualname__ = __name__, "Evil"
    globals()["Evil"] = Evil
    folder = shutil.copytree(finished.folder / "contenders" / "linear", tmp_path / "linear")
    (folder / "estimator.skops").write_bytes(dumps([Evil()]))
    with pytest.raises(CheckpointMismatch, match="`.*Evil`, which could run code, and nothing was"):
        load_contender(folder)
    assert not Evil.made


def test_a_damaged_file_is_refused(finished, tmp_path):
    import shutil

    folder = shutil.copytree(finished.folder / "contenders" / "boosting", tmp_path / "b")
    whole = (folder / "estimator.skops").read_bytes()
    (folder / "estimator.skops").write_bytes(whole[:-30])
    with pytest.raises(DamagedFile, match="estimator.skops` is truncated or was altered"):
        load_contender(folder)
    (folder / "contender.json").write_text("{")
    with pytest.raises(DamagedFile, match="is truncated or was altered"):
        load_contender(folder)
    names = zipfile.ZipFile(io.BytesIO(whole)).namelist()
    assert not [name for name in names if name.endswith((".pkl", ".pickle", ".joblib"))]


def test_a_blend_is_the_mean_of_its_members(finished, priced, table):
    for found in (finished, priced):
        weights = {"linear": 0.25, "model": 0.75}
        save_blend(weights, found.folder / "contenders" / "blend")
        blend = load_contender(found.folder / "contenders" / "blend")
        assert isinstance(blend, Blend)
        X = castalia.read(table)
        models = {key: load_model(found.folder, key) for key in weights}
        ask = "predict_proba" if found is finished else "predict"
        expected = sum(w * getattr(models[key], ask)(X) for key, w in weights.items())
        np.testing.assert_allclose(getattr(blend, ask)(X), expected)
    assert set(blend.predict(X).shape) == {80}


def test_weights_of_a_blend_are_those_of_least_squares_on_the_simplex():
    from scipy.optimize import minimize

    rng = np.random.default_rng(0)
    y = rng.normal(size=200) + 5
    said = y[:, None] + rng.normal(size=(200, 3)) * [0.5, 1.0, 3.0]
    found = blend_weights(said, y)
    reference = minimize(
        lambda w: np.square(said @ w - y).sum(),
        np.full(3, 1 / 3),
        bounds=[(0, 1)] * 3,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
    ).x
    np.testing.assert_allclose(found, reference, atol=1e-3)
    chances = rng.dirichlet([1, 1, 1], size=(50, 2)).transpose(0, 2, 1)  # (n, K, M)
    assert blend_weights(chances, rng.integers(0, 3, 50)).sum() == pytest.approx(1)


def test_models_that_err_apart_are_blended_and_better(table, tmp_path):
    from castalia.method.answer_scores import Answers
    from castalia.method.blend_entry import blend_entries
    from castalia.method.run_context import RunContext

    rng = np.random.default_rng(0)
    rows = "\n".join(f"{v:.3f},{w:.3f}" for v, w in rng.normal(size=(300, 2)))
    (tmp_path / "t.csv").write_text(f"x,y\n{rows}\n")
    problem = pose_problem(open_data(quick_plan(tmp_path / "t.csv", "y", seeds=3)))

    def entry(key):
        parts = [
            Answers(problem.task.y[part.test] + rng.normal(size=len(part.test)))
            for part in problem.parts
        ]
        return problem.entry(key, parts, key, "model" if key == "model" else "baseline")

    entries = [entry(key) for key in ("guess", "linear", "model")]
    context = RunContext(tmp_path, None, None)
    found = blend_entries(problem, entries, context)
    best = min(e.shown.scores["rmse"] for e in entries[1:])
    assert found.shown.scores["rmse"] < 0.9 * best
    assert found.shown.note.count("+") == 1
    assert (tmp_path / "contenders" / "blend" / "contender.json").is_file()
