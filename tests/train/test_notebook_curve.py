"""What a notebook shows of trainings and runs."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

import castalia
from castalia.train import RunStore, notebook_curve


@pytest.fixture
def shown(monkeypatch):
    """Stand in for a kernel; what is displayed, and what is drawn over it."""
    found = SimpleNamespace(first=[], updates=[])
    display = ModuleType("IPython.display")
    display.HTML = str
    handle = SimpleNamespace(update=found.updates.append)
    display.display = lambda page, display_id: found.first.append(page) or handle
    for name in ("ipykernel", "IPython"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return found


def fit(epochs, verbose=True):
    training = castalia.Training(verbose=verbose, patience=99)
    est = castalia.MLPRegressor(hidden=(2,), epochs=epochs, training=training)
    rows = [i / 40 for i in range(40)]
    X = [[x] for x in rows]
    return est.fit(X, rows, validation=(X, rows))


def test_a_training_has_one_output_that_is_redrawn(shown, monkeypatch):
    monkeypatch.setattr(notebook_curve, "PAUSE", 0.0)
    fit(5)
    assert len(shown.first) == 1
    assert len(shown.updates) == 5  # four epochs more, and the end
    assert "epoch 5/5" in shown.updates[-1]
    assert shown.updates[-1].count("<polyline") == 2


def test_quick_epochs_do_not_flood_the_notebook(shown):
    fit(50)
    assert len(shown.first) == 1
    assert len(shown.updates) <= 3


def test_a_short_or_silent_training_shows_nothing(shown):
    fit(2, verbose="auto")
    fit(2, verbose=False)
    assert shown.first == []


def test_a_curve_keeps_its_extremes_inside_and_skips_what_is_not_finite():
    text = notebook_curve.curve_svg({"a<b": [100.0, float("nan"), 1.0]})
    assert 'points="0.0,0.0 480.0,160.0"' in text
    assert "a&lt;b" in text
    assert notebook_curve.curve_svg({"loss": [float("nan")]}) == ""


def test_a_run_is_a_table_with_its_last_numbers(tmp_path):
    with RunStore(tmp_path) as store:
        run = store.open_run("one", "x", {"model": "<b>"})
        run.log(0, 0, {"loss": 2.0})
        run.log(1, 0, {"loss": 0.5})
        text = run._repr_html_()
    assert "<th>loss</th><td>0.5</td>" in text
    assert "&lt;b&gt;" in text
