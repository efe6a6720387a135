"""Pipelines saved and loaded without pickle."""

import hashlib
import json
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import castalia
from castalia import MLPClassifier
from castalia.errors import CheckpointMismatch, DamagedFile, InvalidData, InvalidParameter

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {"colour": RNG.choice(["red", "green"], 60), "x": RNG.normal(size=60), "z": RNG.random(60)}
)
LABELS = np.where(TABLE["x"] > 0, "yes", "no")


def pipeline(last=None):
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    columns = ColumnTransformer(
        [("words", OneHotEncoder(handle_unknown="ignore"), ["colour"]), ("n", numbers, ["x"])],
        remainder="passthrough",
    )
    last = MLPClassifier(hidden=(4,), epochs=2, random_state=0) if last is None else last
    return Pipeline([("columns", columns), ("idle", "passthrough"), ("last", last)])


@pytest.mark.parametrize("last", [None, HistGradientBoostingClassifier(max_iter=3)])
def test_a_loaded_pipeline_answers_to_the_bit_alike(tmp_path, last, monkeypatch):
    fitted = pipeline(last).fit(TABLE, LABELS)
    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, None)
    loaded = castalia.load(castalia.save(fitted, tmp_path / "p"))
    assert [name for name, _ in loaded.steps] == ["columns", "idle", "last"]
    assert np.array_equal(loaded.predict_proba(TABLE), fitted.predict_proba(TABLE))
    assert type(loaded[-1]) is type(fitted[-1])


def test_pipelines_within_and_unfitted_ones_are_kept(tmp_path):
    inner = make_pipeline(StandardScaler(), MLPClassifier(hidden=(3,)))
    loaded = castalia.load(castalia.save(Pipeline([("in", inner)]), tmp_path / "p"))
    assert loaded["in"][-1].hidden == (3,)
    castalia.save(pipeline(), tmp_path / "p")  # replaces what was saved there
    assert castalia.load(tmp_path / "p")["idle"] == "passthrough"


def test_nothing_but_a_saved_pipeline_is_replaced(tmp_path):
    folder = castalia.save(make_pipeline(StandardScaler()), tmp_path / "p")
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(InvalidData, match="must be new, an empty folder or a saved model"):
        castalia.save(make_pipeline(StandardScaler()), folder)


def test_steps_that_are_code_are_refused(tmp_path):
    with pytest.raises(InvalidParameter, match="scikit-learn's parts alone; it holds `.*shout`"):
        castalia.save(make_pipeline(FunctionTransformer(shout)), tmp_path / "p")
    with pytest.raises(InvalidParameter, match="of scikit-learn or of Castalia's catalogue; got "):
        castalia.save(make_pipeline(Mine()), tmp_path / "p")
    assert not (tmp_path / "p").exists()


def shout(X):
    return X


class Mine(StandardScaler):
    pass


def test_altered_files_and_strange_types_are_refused(tmp_path):
    from skops import io

    fitted = make_pipeline(StandardScaler(), LogisticRegression()).fit(TABLE[["x"]], LABELS)
    folder = castalia.save(fitted, tmp_path / "p")
    file = folder / "0-standardscaler.skops"
    whole = file.read_bytes()
    file.write_bytes(whole[:-4])
    with pytest.raises(DamagedFile, match="standardscaler.skops` is truncated or was altered"):
        castalia.load(folder)
    evil = io.dumps(FunctionTransformer(shout))
    mark = hashlib.sha256(evil).hexdigest()
    file.write_bytes(evil)
    head = json.loads((folder / "pipeline.json").read_text())
    head["steps"][0]["sha256"] = mark
    content = {k: v for k, v in head.items() if k != "checksum"}
    text = json.dumps(content, separators=(",", ":"))
    head["checksum"] = hashlib.sha256(text.encode()).hexdigest()
    (folder / "pipeline.json").write_text(json.dumps(head))
    with pytest.raises(CheckpointMismatch, match="which could run code, and nothing was loaded"):
        castalia.load(folder)
    (folder / "pipeline.json").write_text("{}")
    with pytest.raises(DamagedFile, match="pipeline.json"):
        castalia.load(folder)
