"""A saved model carries no path of the machine that trained it."""

import shutil
from dataclasses import replace

import numpy as np

from castalia import MLPRegressor, Training, load, save


def test_a_loaded_model_writes_nowhere_until_it_is_asked_to(tmp_path):
    X, y = np.arange(40.0)[:, None], np.arange(40.0)
    training = Training(run=tmp_path / "runs" / "first", watch=False)
    model = MLPRegressor(hidden=(2,), epochs=1, random_state=0, training=training).fit(X, y)
    save(model, tmp_path / "model")
    assert "first" not in (tmp_path / "model" / "model.json").read_text()
    shutil.rmtree(tmp_path / "runs")
    loaded = load(tmp_path / "model")
    assert loaded.training == replace(training, run=None)
    loaded.fit(X, y)
    assert not (tmp_path / "runs").exists()
    assert model.training.run == tmp_path / "runs" / "first"  # the one that was saved keeps its own
