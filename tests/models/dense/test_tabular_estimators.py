from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from sklearn.datasets import make_classification, make_regression

import castalia
from castalia import MLPClassifier, TabularClassifier, TabularRegressor, Training
from castalia.data.tabular_adapter import member_folds

QUICK = {"hidden": (8,), "members": 4, "epochs": 3, "random_state": 0}
LOOP = Training(optimizer="adamw", validation=0.25, device="cpu")


def rows(n=120):
    return make_classification(n, 5, class_sep=0.5, random_state=0)


def test_a_member_never_learns_from_rows_it_leaves_out():
    X, y = rows()
    other = np.where(np.arange(len(y)) == 7, 1 - y, y)
    held, fits = member_folds(len(y), 4, 0.25, seed=0), []
    for labels in (y, other):
        model = TabularClassifier(**QUICK, training=LOOP)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("castalia.data.tabular_adapter.member_folds", lambda *a, **k: held)
            fits.append(model.fit(X, labels).module_.layers[0].weight)
    same = [torch.equal(a, b) for a, b in zip(*fits, strict=True)]
    assert same == held[7].tolist()


def test_what_validates_is_the_loss_of_members_on_rows_they_leave_out():
    X, y = rows()
    model = TabularClassifier(**QUICK, training=LOOP).fit(X, y)
    held = torch.from_numpy(member_folds(120, 4, 0.25, seed=model.settings_["seed"], labels=y))
    inputs = torch.from_numpy(model.adapter_.encoder.encode(X))
    outputs = model.module_.member_outputs(inputs).log_softmax(2)  # (M, B, K)
    losses = -outputs[:, torch.arange(120), torch.from_numpy(y)]
    np.testing.assert_allclose(
        model.history_[-1]["val_loss"], losses.T[held].mean().item(), rtol=1e-5
    )


def test_training_ends_when_rows_left_out_say_so():
    X, noise = rows()[0], np.random.default_rng(0).integers(0, 2, 120)
    model = TabularClassifier(random_state=0).fit(X, noise)
    assert model.n_iter_ < model.epochs
    assert model.best_["epoch"] < model.n_iter_ - 1


class KeptWeights(castalia.Callback):
    """The weights after every epoch."""

    def __init__(self):
        self.epochs = []

    def on_epoch_end(self, state):
        self.epochs.append({name: w.clone() for name, w in state.net.state_dict().items()})


def test_each_member_keeps_the_weights_of_its_own_best_epoch():
    X, y = rows()
    kept = KeptWeights()
    training = replace(LOOP, patience=15, callbacks=[kept])
    model = TabularClassifier(**QUICK | {"epochs": 80, "lr": 0.02}, training=training).fit(X, y)
    held = torch.from_numpy(member_folds(120, 4, 0.25, seed=model.settings_["seed"], labels=y))
    inputs = torch.from_numpy(model.adapter_.encoder.encode(X))
    found = deepcopy(model.module_.state_dict())
    losses = []
    for weights in kept.epochs:
        model.module_.load_state_dict(weights)
        outputs = model.module_.member_outputs(inputs).log_softmax(2)  # (M, B, K)
        each = -outputs[:, torch.arange(120), torch.from_numpy(y)] * held.T
        losses.append((each.sum(dim=1) / 30).tolist())
    best = np.argmin(losses, axis=0)  # (M,)
    assert len(set(best)) > 1
    for name, w in found.items():
        for i, epoch in enumerate(best):
            assert w[i].equal(kept.epochs[epoch][name][i])
    np.testing.assert_allclose(model.best_["val_loss"], np.min(losses, axis=0).mean(), rtol=1e-5)
    assert model.n_iter_ >= max(best) + 1
    assert (
        model.n_iter_ == model.best_["mark"]["epoch"] + 16
    )  # from the last progress of their mean


def test_confidence_is_that_of_members_which_left_a_row_out():
    X, noise = rows()[0], np.random.default_rng(0).integers(0, 2, 120)
    model = TabularClassifier(**QUICK | {"epochs": 150, "lr": 0.05}, training=LOOP, calibrate=True)
    assert model.fit(X, noise).score(X, noise) > 0.8  # learnt by heart
    assert model.temperature_ > 3  # and found out


def test_the_doctor_hears_of_a_row_from_members_that_left_it_out(monkeypatch):
    X, noise = rows()[0], np.random.default_rng(0).integers(0, 2, 120)
    said = []
    monkeypatch.setattr(
        "castalia.diagnose.monitor.validation_log.ValidationLog.batch",
        lambda log, loss, outputs, y, inputs: said.append((outputs.argmax(1) == y).float().mean()),
    )
    settings = QUICK | {"epochs": 60, "lr": 0.05}
    model = TabularClassifier(**settings, training=replace(LOOP, watch=True)).fit(X, noise)
    assert model.score(X, noise) > 0.8  # learnt by heart
    assert said[-1] < 0.65  # but not by those asked


def test_validation_rows_can_be_given_and_rows_can_be_sparse():
    X, y = make_regression(200, 5, random_state=0)
    model = TabularRegressor(**QUICK).fit(X[:150], y[:150], validation=(X[150:], y[150:]))
    assert model.settings_["validation_rows"] == 50
    thin = csr_matrix(np.where(np.abs(X) > 1, X, 0))
    dense = TabularRegressor(**QUICK).fit(thin.toarray(), y).predict(thin.toarray())
    np.testing.assert_allclose(TabularRegressor(**QUICK).fit(thin, y).predict(thin), dense)


@pytest.mark.parametrize("kind", [TabularClassifier, TabularRegressor])
def test_the_doctor_finds_nothing_in_folds_and_members(kind):
    X, y = rows(300)
    y = y if kind is TabularClassifier else X[:, 0] + 0.1 * X[:, 1] ** 2
    model = kind(random_state=0).set_params(training__watch=True).fit(X, y)
    assert [finding.code for finding in model.diagnosis_] == []


def test_numbers_without_a_scale_still_teach():
    rng = np.random.default_rng(0)
    X = np.exp(3 * rng.normal(size=(400, 2)))  # a few rows lie a hundred deviations away
    y = (X[:, 0] > 1).astype(int)
    assert TabularClassifier(epochs=20, random_state=0).fit(X, y).score(X, y) > 0.97


def test_a_saved_ensemble_goes_on_where_it_ended(tmp_path):
    X, y = rows()
    model = TabularClassifier(**QUICK, warm_start=True).fit(X, y)
    again = castalia.load(castalia.save(model, tmp_path / "model"))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert len(again.fit(X, y).history_) > len(model.history_)


def test_a_perceptron_uses_the_rows_it_holds_out():
    X, noise = rows(200)[0], np.random.default_rng(0).integers(0, 2, 200)
    model = MLPClassifier(lr=0.01, random_state=0).fit(X, noise)
    assert model.best_["epoch"] + 21 == model.n_iter_ < model.epochs
    plain = MLPClassifier(lr=0.01, random_state=0, training=Training()).fit(X, noise)
    assert plain.n_iter_ == plain.epochs
