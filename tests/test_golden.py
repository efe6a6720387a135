"""Models written by every release keep loading and predicting the same."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import castalia
from castalia.catalog import SYSTEMS

HOME = Path(__file__).parent / "golden"
FOLDERS = sorted(path.parent for path in HOME.glob("*/*/expected.json"))


def test_this_release_has_a_golden_model_of_every_system():
    found = {folder.name for folder in FOLDERS if folder.parent.name == castalia.__version__}
    assert found == set(SYSTEMS)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda f: f"{f.parent.name}/{f.name}")
def test_a_golden_model_loads_and_predicts_what_it_did(folder):
    expected = json.loads((folder / "expected.json").read_text())
    model = castalia.load(folder / "model")
    rows = expected["rows"]
    named = isinstance(rows[0], dict)
    X = castalia.read(pa.Table.from_pylist(rows)) if named else np.array(rows)
    found = getattr(model, expected["method"])(X)
    np.testing.assert_allclose(found, expected["answer"], rtol=1e-5, atol=1e-9)
