"""Models written by every release keep loading and predicting the same."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import castalia

HOME = Path(__file__).parent / "golden"
FOLDERS = sorted(path.parent for path in HOME.glob("*/*/expected.json"))


def test_this_release_has_golden_models():
    assert [f.name for f in FOLDERS if f.parent.name == castalia.__version__] == [
        "DistributionRegressor",
        "MLPClassifier",
        "MLPRegressor",
    ]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda f: f"{f.parent.name}/{f.name}")
def test_a_golden_model_loads_and_predicts_what_it_did(folder):
    expected = json.loads((folder / "expected.json").read_text())
    model = castalia.load(folder / "model")
    table = castalia.read(pa.Table.from_pylist(expected["rows"]))
    found = getattr(model, expected["method"])(table)
    np.testing.assert_allclose(found, expected["answer"], rtol=1e-6)
