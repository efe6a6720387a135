"""Rows of the course on choosing models and settings."""

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.linear_model import Ridge
from sklearn.metrics import average_precision_score, mean_squared_error, precision_recall_curve
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import Pipeline

from castalia import LinearRegression, MLPClassifier, MLPRegressor, Training
from castalia.errors import Diverged
from castalia.evaluate import PrecisionRecall
from castalia.testing.toys import moons, sine
from castalia.tune import EFFECTS, Choice, GridSearch, RandomSearch, Uniform


@dataclass
class OneKnob(RegressorMixin, BaseEstimator):
    """Only one of its settings matters; it remembers the rows it was shown."""

    matters: float = 0.0
    idle: float = 0.0
    seen = []

    def fit(self, X, y=None):
        self.seen.append(X[:, 0])
        self.fitted_ = True
        return self

    def score(self, X, y=None):
        self.seen.append(X[:, 0])
        return -((self.matters - 0.37) ** 2)


def test_hold_out_selection_takes_the_best_of_the_grid_and_trains_only_on_the_rest():
    X = np.arange(40.0)[:, None]
    OneKnob.seen = []
    search = GridSearch(OneKnob(), {"matters": [0.0, 0.4, 0.9]}, cv=0.25, refit=False)
    assert search.fit(X, X[:, 0]).best_params_ == {"matters": 0.4}
    for trained, held in zip(OneKnob.seen[::2], OneKnob.seen[1::2], strict=True):
        assert len(held) == 10
        assert not set(trained) & set(held)


def test_k_fold_scores_equal_a_loop_by_hand():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 4))
    y = X.sum(axis=1) + rng.normal(size=50)
    folds = KFold(5, shuffle=True, random_state=1)
    search = GridSearch(LinearRegression(), {"fit_intercept": [True]}, cv=folds).fit(X, y)
    by_hand = [
        LinearRegression().fit(X[train], y[train]).score(X[test], y[test])
        for train, test in folds.split(X)
    ]
    found = [search.cv_results_[f"split{i}_test_score"][0] for i in range(5)]
    assert found == pytest.approx(by_hand)
    assert search.best_score_ == pytest.approx(np.mean(by_hand))
    held = np.concatenate([test for _, test in folds.split(X)])
    assert sorted(held.tolist()) == list(range(50))


def test_a_precision_recall_curve_is_scikit_learn_s():
    rng = np.random.default_rng(0)
    p = rng.uniform(size=300)
    y = (rng.uniform(size=300) < p).astype(int)
    shown = PrecisionRecall.from_predictions(y, p)
    precision, recall, _ = precision_recall_curve(y, p)
    ours = next(iter(shown.curves.values()))
    points = set(zip(recall.round(9).tolist(), precision.round(9).tolist(), strict=True))
    assert set(zip(ours[0].round(9).tolist(), ours[1].round(9).tolist(), strict=True)) <= points
    assert ours[2] == pytest.approx(average_precision_score(y, p))


def test_random_search_beats_a_grid_of_equal_size_when_one_setting_matters():
    X = np.arange(10.0)[:, None]
    ticks = [0.0, 0.25, 0.5, 0.75, 1.0]
    grid = GridSearch(OneKnob(), {"matters": ticks, "idle": ticks}, cv=2).fit(X, X[:, 0])
    space = {"matters": Uniform(0, 1), "idle": Uniform(0, 1)}
    best = [
        RandomSearch(OneKnob(), space, trials=25, cv=2, prune=False, random_state=seed)
        .fit(X, X[:, 0])
        .best_score_
        for seed in range(7)
    ]
    assert len(grid.cv_results_["params"]) == 25
    assert np.median(best) > grid.best_score_


def training_error(lr):
    X, y = sine(200)
    training = Training(optimizer="sgd", validation=0)
    model = MLPRegressor(hidden=(16,), epochs=15, lr=lr, training=training, random_state=0)
    try:
        return mean_squared_error(y, model.fit(X, y).predict(X))
    except Diverged:
        return np.inf


def test_the_training_error_over_the_learning_rate_is_u_shaped():
    errors = [training_error(lr) for lr in (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 100.0)]
    best = int(np.argmin(errors))
    assert 0 < best < 5
    assert errors[0] > 2 * errors[best]  # too small: slow
    assert errors[-1] > 10 * errors[best]  # too large: it overshoots or diverges


def test_a_search_over_architectures_returns_the_best_validated_one():
    X, y = sine(200)
    network = MLPRegressor(hidden=(16,), epochs=60, lr=1e-2, random_state=0)
    space = {"model": Choice(LinearRegression(), network)}
    search = GridSearch(Pipeline([("model", Ridge())]), space, cv=3).fit(X, y)
    assert isinstance(search.best_params_["model"], MLPRegressor)
    assert search.predict(X[:5]).shape == (5,)


def test_cross_validation_chooses_a_penalty_near_the_oracle_s():
    rng = np.random.default_rng(0)
    w = rng.normal(size=30) * 0.2
    X, new = rng.normal(size=(60, 30)), rng.normal(size=(4000, 30))
    y = X @ w + rng.normal(size=60)
    grid = list(np.geomspace(0.1, 1000, 9))
    risk = [np.square(Ridge(alpha=a).fit(X, y).predict(new) - new @ w).mean() for a in grid]
    search = GridSearch(Ridge(), {"alpha": grid}, cv=10).fit(X, y)
    by_hand = [cross_val_score(Ridge(alpha=a), X, y, cv=10).mean() for a in grid]
    order = np.argsort(search.cv_results_["param_alpha"])
    assert np.array(search.cv_results_["mean_test_score"])[order] == pytest.approx(by_hand)
    assert search.best_params_["alpha"] == grid[int(np.argmax(by_hand))]
    assert abs(grid.index(search.best_params_["alpha"]) - int(np.argmin(risk))) <= 1
    assert search.best_estimator_.alpha == search.best_params_["alpha"]


def test_cross_validation_chooses_a_dropout_rate_near_the_oracle_s():
    rng = np.random.default_rng(1)
    X, new = rng.normal(size=(60, 8)), rng.normal(size=(2000, 8))
    y = X[:, 0] + rng.normal(size=60)
    net = MLPRegressor(hidden=(64,), epochs=80, lr=1e-2, random_state=0,
                       training=Training(validation=0))  # fmt: skip
    grid = [0.0, 0.2, 0.4, 0.6, 0.8]
    risk = [
        np.square(clone(net).set_params(dropout=p).fit(X, y).predict(new) - new[:, 0]).mean()
        for p in grid
    ]
    found = GridSearch(net, {"dropout": grid}, cv=3, refit=False).fit(X, y)
    assert int(np.argmin(risk)) > 1  # without dropout it would overfit
    assert abs(grid.index(found.best_params_["dropout"]) - int(np.argmin(risk))) <= 1


KNOBS = {
    "hidden": ((1,), (16,)),
    "lr": (1e-4, 1e-2),
    "epochs": (3, 60),
    "dropout": (0.0, 0.6),
    "training__weight_decay": (0.0, 0.3),
}


@pytest.mark.parametrize("knob", KNOBS)
def test_turning_a_knob_moves_the_training_error_as_the_table_says(knob):
    X, y = moons(200, noise=0.25)
    base = MLPClassifier(
        hidden=(16,),
        epochs=40,
        lr=1e-2,
        training=Training(optimizer="adamw", validation=0),
        random_state=0,
    )

    def loss(value):
        model = base.set_params(**{knob: value}).fit(X, y)
        p = model.predict_proba(X)[np.arange(len(y)), y]
        return -np.log(p).mean()

    small, large = (loss(value) for value in KNOBS[knob])
    assert (large < small) == (EFFECTS[knob].raises_capacity == "larger")
