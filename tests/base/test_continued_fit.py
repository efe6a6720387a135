"""Fits that go on: ``partial_fit``, ``warm_start`` and rows to validate on."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.neural_network import MLPClassifier as SklearnMLP

from castalia import MLPClassifier, MLPRegressor, Training
from castalia.catalog import SYSTEMS
from castalia.errors import InvalidData, InvalidParameter
from castalia.testing.contract import _some, make
from castalia.testing.toys import moons, sine

X, Y = moons(120)
CLASSES = np.unique(Y)


def classifier(**settings):
    training = settings.pop("training", Training(validation=0))
    fixed = {"hidden": (8,), "batch_size": len(X), "lr": 0.01, "random_state": 0}
    return MLPClassifier(**{**fixed, "training": training, **settings})


def weights(model):
    return torch.nn.utils.parameters_to_vector(model.module_.parameters()).detach()


@pytest.mark.parametrize("optimizer", ["adam", "momentum"])
def test_epochs_one_at_a_time_are_epochs_in_one_fit(optimizer):
    training = Training(validation=0, optimizer=optimizer)
    parts = classifier(training=training)
    for _ in range(6):
        parts.partial_fit(X, Y, classes=CLASSES)
    whole = classifier(training=training, epochs=6).fit(X, Y)
    torch.testing.assert_close(weights(parts), weights(whole), atol=1e-6, rtol=0)
    assert [line["epoch"] for line in parts.history_] == list(range(6))


def test_parts_of_a_table_are_learnt_one_after_the_other():
    model = classifier(batch_size=16, lr=0.03)
    for _ in range(20):
        for rows in np.array_split(np.arange(len(X)), 3):
            model.partial_fit(X[rows], Y[rows], classes=CLASSES)
    assert model.n_iter_ == 60
    assert model.score(X, Y) > 0.9


def test_a_part_need_not_hold_every_class():
    model = classifier().partial_fit(X[Y == 0], Y[Y == 0], classes=CLASSES)
    model.partial_fit(X[Y == 1], Y[Y == 1])
    assert model.predict_proba(X).shape == (len(X), 2)


def test_the_classes_are_asked_for_as_scikit_learn_does():
    theirs = SklearnMLP(hidden_layer_sizes=(4,))
    for model in (classifier(), theirs):
        with pytest.raises(ValueError, match="classes must be passed|`classes` must be passed"):
            model.partial_fit(X, Y)
        model.partial_fit(X, Y, classes=CLASSES)
        with pytest.raises(ValueError, match="classes"):
            model.partial_fit(X, Y, classes=[0, 1, 2])
    with pytest.raises(InvalidData, match="only classes seen in training; got 7"):
        classifier().partial_fit(X, np.where(Y == 1, 7, 0), classes=CLASSES)


@pytest.mark.parametrize("setting", [{"class_weight": "balanced"}, {"calibrate": True}])
def test_what_needs_all_rows_is_refused(setting):
    with pytest.raises(InvalidParameter, match="needs all rows at once"):
        classifier(**setting).partial_fit(X, Y, classes=CLASSES)


def test_a_regressor_needs_no_classes():
    rows, values = sine(80)
    model = MLPRegressor(hidden=(8,), lr=0.05, random_state=0)
    first = model.partial_fit(rows, values).score(rows, values)
    for _ in range(30):
        model.partial_fit(rows, values)
    assert model.score(rows, values) > first + 0.05
    with pytest.raises(InvalidParameter, match="`classes` must be None"):
        model.partial_fit(rows, values, classes=[0, 1])


def test_a_warm_start_goes_on_and_a_cold_one_does_not():
    training = Training(validation=0, optimizer="sgd")
    cold = classifier(training=training, epochs=8).fit(X, Y)
    warm = classifier(training=training, epochs=5, warm_start=True).fit(X, Y)
    warm.set_params(epochs=3).fit(X, Y)
    torch.testing.assert_close(weights(warm), weights(cold), atol=1e-6, rtol=0)
    assert warm.n_iter_ == 8
    assert torch.equal(weights(cold), weights(cold.fit(X, Y)))


def test_a_warm_start_keeps_scales_and_classes():
    model = classifier(epochs=2, warm_start=True).fit(X, Y)
    scale = model.adapter_.encoder.state()["mean"]
    model.fit(10 + X, Y)
    assert np.array_equal(model.adapter_.encoder.state()["mean"], scale)
    with pytest.raises(InvalidData, match="only classes seen in training"):
        model.fit(X, Y + 5)
    with pytest.raises(ValueError, match="expecting 2 features"):
        model.fit(X[:, :1], Y)
    assert clone(model).warm_start


def test_a_warm_start_with_a_run_does_not_take_up_the_finished_run(tmp_path):
    training = Training(validation=0, run=tmp_path / "run")
    model = classifier(training=training, epochs=2, warm_start=True).fit(X, Y)
    before = weights(model).clone()
    assert not torch.equal(weights(model.fit(X, Y)), before)
    assert model.run_ == str(tmp_path / "run-2")


def test_rows_to_validate_on_are_given_to_fit():
    half = len(X) // 2
    model = classifier(epochs=3).fit(X[:half], Y[:half], validation=(X[half:], Y[half:]))
    assert model.settings_["rows"] == half
    assert model.settings_["validation_rows"] == len(X) - half
    loss = torch.nn.functional.cross_entropy(
        torch.from_numpy(np.log(model.predict_proba(X[half:]))), torch.from_numpy(Y[half:])
    )
    assert model.history_[-1]["val_loss"] == pytest.approx(float(loss), abs=1e-5)
    assert classifier(epochs=1).fit(X, Y, validation=0.25).settings_["validation_rows"] == 30


@pytest.mark.parametrize("name", ["MLPClassifier", "DistributionRegressor"])
def test_an_epoch_more_moves_the_weights(name):
    record = SYSTEMS[name]
    rows, targets = _some(record)
    model = make(record, epochs=1, warm_start=True).fit(rows, targets)
    before = weights(model).clone()
    model.fit(rows, targets, validation=(rows[:20], targets[:20]))
    assert model.n_iter_ == 2
    assert "val_loss" in model.history_[1]
    assert not torch.equal(before, weights(model))
