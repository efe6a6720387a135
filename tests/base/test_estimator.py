"""The estimator contract, with scikit-learn's tools."""

import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.processes import run_code

from castalia import MLPClassifier, MLPRegressor, Training
from castalia.errors import InvalidData
from castalia.testing.toys import moons, sine
from castalia.train import RunStore

SMALL = {"hidden": (8,), "epochs": 8, "lr": 0.02, "random_state": 0}


@pytest.mark.parametrize("training", [None, Training(clip=1.0)], ids=["None", "Training"])
def test_a_search_reaches_into_the_training(training):
    grid = {"training__optimizer": ["adam", "adagrad"], "hidden": [(4,), (8,)]}
    model = MLPClassifier(**{**SMALL, "training": training})
    search = GridSearchCV(model, grid, cv=2).fit(*moons(100))
    assert len(search.cv_results_["params"]) == 4
    best = search.best_estimator_.training
    assert best.optimizer == search.best_params_["training__optimizer"]
    assert best.clip == (None if training is None else 1.0)
    assert training is None or training.optimizer == "adam"  # the user's own object stays


def test_it_works_in_a_pipeline_and_in_cross_validation():
    X, y = moons(200)
    pipe = make_pipeline(StandardScaler(), MLPClassifier(**{**SMALL, "epochs": 30}))
    assert cross_val_score(pipe, X, y, cv=3).mean() > 0.8
    assert pipe.fit(X, y).set_params(mlpclassifier__lr=0.5)[-1].lr == 0.5


def test_a_clone_is_unfitted_and_a_pickle_answers_alike():
    X, y = moons(100)
    model = MLPClassifier(**SMALL).fit(X, y)
    with pytest.raises(NotFittedError):
        clone(model).predict(X)
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.predict_proba(X), model.predict_proba(X))


def test_the_module_is_a_plain_one_to_take_out():
    X, y = sine(100)
    training = Training(precision="float64")
    model = MLPRegressor(**SMALL, training=training).fit(X, y)
    assert type(model.module_).__module__ == "castalia.nets.dense.mlp"
    rows = torch.from_numpy((X - X.mean(0)) / X.std(0))
    with torch.no_grad():
        raw = model.module_(rows).numpy()[:, 0]
    by_hand = raw * model.target_scale_[0] + model.target_mean_[0]
    np.testing.assert_allclose(by_hand, model.predict(X), atol=1e-9)


def test_a_weight_of_two_is_the_row_twice_and_of_zero_none():
    X, y = sine(40)
    weight = np.arange(40) % 3
    training = Training(validation=0, precision="float64")
    full = {"training": training, "batch_size": 10**6, "epochs": 20}
    weighted = MLPRegressor(**SMALL | full).fit(X, y, sample_weight=weight)
    repeated = MLPRegressor(**SMALL | full).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-9)


def test_given_validation_rows_are_used_and_nothing_is_held_out():
    X, y = moons(120)
    training = Training(validation=(X[80:], y[80:]), patience=3, precision="float64")
    model = MLPClassifier(**SMALL | {"epochs": 40}, training=training).fit(X[:80], y[:80])
    assert model.settings_["rows"] == 80
    assert model.settings_["validation_rows"] == 40
    p = model.predict_proba(X[80:])[np.arange(40), y[80:]]
    assert -np.log(p).mean() == pytest.approx(model.best_["val_loss"], abs=1e-9)


def test_a_validation_class_never_seen_is_named():
    X, y = moons(60)
    training = Training(validation=(X, np.where(y == 1, 7, y)))
    with pytest.raises(InvalidData, match="only classes seen in training; got 7"):
        MLPClassifier(training=training).fit(X, y)


def test_the_validation_share_is_stratified_and_left_out_below_ten_rows():
    X, y = moons(99)
    assert MLPClassifier(**SMALL).fit(X, y).settings_["validation_rows"] == 0
    X, y = moons(100)
    model = MLPClassifier(**SMALL).fit(X, y)
    assert (model.settings_["rows"], model.settings_["validation_rows"]) == (90, 10)


def test_a_run_goes_on_in_another_process_whatever_objects_its_settings_hold(zygote, tmp_path):
    code = (
        "import numpy as np, torch\n"
        "from castalia import MLPRegressor, Training\n"
        "from castalia.optim import cosine, warmup\n"
        "X = np.arange(40.0)[:, None]\n"
        f"t = Training(run={str(tmp_path / 'run')!r}, schedule=warmup(cosine()),\n"
        "    optimizer=torch.optim.NAdam, validation=(X, X[:, 0]))\n"
        "MLPRegressor(hidden=(2,), epochs=2, random_state=0, training=t).fit(X, X[:, 0])\n"
    )
    exec(code)
    done = run_code(zygote, tmp_path, code)
    assert done.returncode == 0, done.stderr
    with RunStore(tmp_path) as store:
        assert [run["name"] for run in store.runs()] == ["run"]


def test_other_data_or_settings_begin_another_run(tmp_path):
    X, y = sine(60)
    for rows, rate in ((60, 0.01), (50, 0.01), (60, 0.02), (60, 0.01)):
        training = Training(run=tmp_path / "run")
        MLPRegressor(hidden=(2,), epochs=1, lr=rate, random_state=0, training=training).fit(
            X[:rows], y[:rows]
        )
    with RunStore(tmp_path) as store:
        assert [run["name"] for run in store.runs()] == ["run", "run-2", "run-3"]
