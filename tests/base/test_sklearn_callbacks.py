"""scikit-learn's callbacks on our loop."""

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from castalia import MLPClassifier, MLPRegressor
from castalia.testing.toys import moons, sine

callback = pytest.importorskip("sklearn.callback", reason="scikit-learn < 1.9 has no callbacks")
SMALL = {"hidden": (4,), "epochs": 3, "lr": 0.02, "random_state": 0}


def test_a_progress_bar_reaches_its_end(capsys):
    MLPClassifier(**SMALL).set_callbacks(callback.ProgressBar()).fit(*moons(60))
    said = capsys.readouterr().out
    assert "MLPClassifier - fit" in said
    assert "100%" in said


def test_a_monitor_scores_every_epoch_with_the_weights_of_then():
    X, y = sine(80)
    monitor = callback.ScoringMonitor(scoring="r2")
    model = MLPRegressor(**SMALL).set_callbacks(monitor).fit(X, y)
    lines = monitor.get_logs().data
    epochs = [line["r2"] for line in lines if line["task_name"] == "epoch"]
    assert len(epochs) == len(set(epochs)) == 3
    assert epochs[-1] == pytest.approx(model.score(X, y))
    assert [line["r2"] for line in lines if line["task_name"] == "fit"] == [epochs[-1]]


def test_callbacks_do_not_change_the_weights():
    X, y = moons(60)
    plain = MLPClassifier(**SMALL).fit(X, y)
    heard = MLPClassifier(**SMALL).set_callbacks(callback.ScoringMonitor(scoring="accuracy"))
    assert np.array_equal(heard.fit(X, y).predict_proba(X), plain.predict_proba(X))


def test_they_work_in_a_search():
    monitor = callback.ScoringMonitor(scoring="accuracy")
    model = MLPClassifier(**SMALL).set_callbacks(monitor)
    GridSearchCV(model, {"lr": [0.01, 0.1]}, cv=2).fit(*moons(60))
    lines = monitor.get_logs().data
    assert sum(line["task_name"] == "epoch" for line in lines) == 3 * (2 * 2 + 1)


def test_they_work_in_a_pipeline():
    monitor = callback.ScoringMonitor(scoring="accuracy")
    pipe = make_pipeline(StandardScaler(), MLPClassifier(**SMALL).set_callbacks(monitor))
    pipe.fit(*moons(60))
    assert sum(line["task_name"] == "epoch" for line in monitor.get_logs().data) == 3


def test_a_callback_may_end_the_training():
    class Enough:
        max_propagation_depth = None
        epochs = 0

        def setup(self, estimator, context): ...

        def teardown(self, estimator, context): ...

        def on_fit_task_begin(self, estimator, context): ...

        def on_fit_task_end(self, estimator, context):
            self.epochs += context.task_name == "epoch"
            return self.epochs == 2

    model = MLPClassifier(**{**SMALL, "epochs": 9}).set_callbacks(Enough()).fit(*moons(60))
    assert model.n_iter_ == 2
    assert "callback" in model.stopped_
