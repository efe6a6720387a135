"""Every promise, over every estimator of the catalogue; and scikit-learn's own checks."""

import inspect
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from tests.sklearn_checks import conform, learns_alike

from castalia import DistributionRegressor, MLPClassifier
from castalia.catalog import SYSTEMS
from castalia.objectives import LIKELIHOODS
from castalia.testing.contract import (
    CHECKS,
    HARDLY,
    ContractBroken,
    load_class,
    make,
    shortened,
)

RECORDS = list(SYSTEMS.values())
TABLES = [record for record in RECORDS if record.data == "table"]


@pytest.fixture(autouse=True)
def torch_warns_every_time():
    """Torch says a warning once a process; here every fit is to be as quiet as the first."""
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(False)


@pytest.mark.parametrize("check", [name for name in CHECKS if name != "check_doctest"])
@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_the_estimator_keeps_its_promise(record, check):
    CHECKS[check](record)


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_the_estimator_has_an_example(record):  # which `tests/test_examples.py` runs
    assert ">>> " in inspect.getdoc(load_class(record))


# What a rule learns online depends on the order of the rows: a weight scales a step, as in
# scikit-learn's own Perceptron, which is excused from the same two checks, and is no repetition.
REPEATS = {
    f"check_sample_weight_equivalence_on_{kind}_data": "a weight scales a step of an online rule"
    for kind in ("dense", "sparse")
}
# A row that is given twice is given two draws of noise.
DRAWN = dict.fromkeys(REPEATS, "noise is drawn for each row")
# Rows are dealt to clients, and taken up to a share, by their number.
COUNTED = dict.fromkeys(REPEATS, "rows are counted, not their weights")
# Hyperparameters are found up to a tolerance; with given ones weights are repetitions, see
# `tests/models/kernel/test_gaussian_processes.py`.
LEARNT = {
    "check_sample_weight_equivalence_on_dense_data": "a climb ends within its tolerance",
}
GAUSSIAN = ("GaussianProcessRegressor", "GaussianProcessClassifier", "SparseGaussianProcess")
EXCUSED = {
    "Perceptron": REPEATS,
    "Adaline": REPEATS,
    **dict.fromkeys(GAUSSIAN, LEARNT),
    "DenoisingAutoencoder": DRAWN,
    "StochasticAutoencoder": DRAWN,
    "VariationalAutoencoder": DRAWN,
    "SelfSupervised": DRAWN,
    "FederatedAveraging": COUNTED,
    "Curriculum": COUNTED,
    "ProtoNet": COUNTED,
    "OnlineLearning": REPEATS,
}
SAME = ("FeatureExtract", "Pretrain")  # as FineTune; as the two that it is made of


@pytest.mark.parametrize(
    "record", [r for r in TABLES if r.name not in SAME], ids=lambda record: record.name
)
def test_scikit_learn_finds_no_fault(record):
    hardly = shortened(make(record), **HARDLY)
    conform(shortened(make(record), epochs=10), hardly, EXCUSED.get(record.name))


@pytest.mark.parametrize("likelihood", [name for name in LIKELIHOODS if name != "gaussian"])
def test_scikit_learn_finds_no_fault_with_this_likelihood(likelihood):
    learns_alike(DistributionRegressor(likelihood=likelihood, hidden=(16,), lr=2e-2, epochs=30))


# ---- the checks notice a fault ----


@dataclass(kw_only=True, eq=False, repr=False)
class Careless(MLPClassifier):
    """A classifier that breaks promises."""

    def __post_init__(self):
        self.hidden = list(self.hidden)

    def fit(self, X, y=None, sample_weight=None):
        np.random.random()
        self.random_state = None
        X = np.nan_to_num(np.asarray(X, dtype=float))
        return super().fit(X, np.nan_to_num(np.asarray(y, dtype=float)), sample_weight)


@pytest.mark.parametrize(
    "check, message",
    [
        ("check_parameters", "must store `hidden` as is"),
        ("check_determinism", "the same seed must give the same weights"),
        ("check_random_state_is_local", "numpy's random state must stay untouched"),
        ("check_bad_input", "bad data was accepted"),
        ("check_docstring", "lacks"),
        ("check_doctest", "no example"),
        ("check_toy", "below 1.01"),
    ],
)
def test_a_careless_estimator_is_found_out(monkeypatch, check, message):
    record = replace(SYSTEMS["MLPClassifier"], pass_mark=1.01)
    monkeypatch.setattr("castalia.testing.contract.load_class", lambda record: Careless)
    with pytest.raises(ContractBroken, match=message):
        CHECKS[check](record)


class Transductive(MLPClassifier):
    """Answers depend on the rows beside them."""

    def predict_proba(self, X):
        found = super().predict_proba(X)
        return found + found.mean(axis=0)


class Online(MLPClassifier):
    """Every question moves the weights, too little to be seen in the answers."""

    def predict_proba(self, X):
        next(self.module_.parameters()).data.add_(1e-7)
        return super().predict_proba(X)


class Moody(MLPClassifier):
    """Answers differ from one time to the next, too little for a row alone to show."""

    moods = 0

    def predict_proba(self, X):
        self.moods += 1
        return super().predict_proba(X) + 3e-7 * self.moods


@pytest.mark.parametrize(
    "kind, message",
    [
        (Transductive, "a row alone must get the same answer"),
        (Online, "predicting must leave the weights as they are"),
        (Moody, "predict must repeat"),
    ],
)
def test_an_estimator_that_is_not_inductive_is_found_out(monkeypatch, kind, message):
    monkeypatch.setattr("castalia.testing.contract.load_class", lambda record: kind)
    with pytest.raises(ContractBroken, match=message):
        CHECKS["check_batches"](SYSTEMS["MLPClassifier"])


def test_clusters_that_miss_the_classes_are_found_out():
    record = replace(SYSTEMS["KMeans"], small={"n_clusters": 2})
    with pytest.raises(ContractBroken, match="below 0.9"):
        CHECKS["check_toy"](record)
