"""Preflight checks pass on a sound network and each fails on the fault it is for."""

from dataclasses import dataclass
from types import ModuleType

import numpy as np
import pytest
import torch
from torch import nn

import castalia
from castalia.base import Classifier, Estimator
from castalia.data import datasets
from castalia.diagnose import preflight
from castalia.diagnose.preflight_checks import CHECKS
from castalia.objectives import CrossEntropy


def toy(rows=120, seed=0):
    X = np.random.default_rng(seed).normal(size=(rows, 3))
    return X, np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")


class Deaf(nn.Module):
    """A network that ignores its input."""

    def __init__(self, inputs, outputs, start=0.0):
        super().__init__()
        self.bias = nn.Parameter(start * torch.eye(outputs)[0])

    def forward(self, x):
        return self.bias.expand(len(x), -1)


@dataclass(kw_only=True, eq=False, repr=False)
class DeafClassifier(Classifier, Estimator):
    start: float = 0.0

    def _network(self, spec):
        return Deaf(spec.inputs, spec.outputs, self.start)

    def _objective(self, spec):
        return CrossEntropy()


def by_name(estimator, X, y):
    return {check.name: check for check in preflight(estimator, X, y, seconds=4)}


def test_a_sound_classifier_passes_every_check_in_order():
    checks = preflight(castalia.MLPClassifier(hidden=(16,), lr=0.01), *toy(), seconds=8)
    assert [check.name for check in checks] == list(CHECKS)
    assert [check.name for check in checks if not check.passed] == []


def test_a_sound_regressor_passes_and_expects_a_loss_of_one():
    X, _ = toy()
    found = by_name(castalia.MLPRegressor(hidden=(16,), lr=0.01), X, X[:, 0] * 100 + 7)
    assert all(check.passed for check in found.values())
    assert found["initial-loss"].measured == pytest.approx(1.0, abs=0.3)


def test_a_network_that_ignores_its_input_fails_two_checks():
    found = by_name(DeafClassifier(lr=0.01), *toy())
    assert not found["tiny-fit"].passed
    assert not found["input-matters"].passed
    assert found["initial-loss"].passed
    assert found["initial-loss"].measured == pytest.approx(np.log(2), abs=1e-3)


def test_an_overconfident_start_fails_the_initial_loss():
    check = by_name(DeafClassifier(start=20.0), *toy())["initial-loss"]
    assert not check.passed
    assert check.measured > 5
    assert "check the scale of the inputs" in check.message


def test_columns_that_say_nothing_fail_two_checks():
    found = by_name(castalia.MLPClassifier(hidden=(4,)), np.zeros((40, 2)), np.array([0, 1] * 20))
    assert found["tiny-fit"].message == "The rows cannot be distinguished by their columns."
    assert not found["input-matters"].passed
    assert found["shuffled-labels"].passed


def test_the_estimator_and_the_data_stay_as_they_are():
    estimator = castalia.MLPClassifier(hidden=(8,), training=castalia.Training(patience=3))
    before, (X, y) = str(estimator.get_params()), toy(40)
    preflight(estimator, X.copy(), y, seconds=2)
    assert str(estimator.get_params()) == before
    assert not hasattr(estimator, "module_")


def test_tables_with_words_and_gaps_can_be_checked():
    data = datasets.load("penguins").with_target("species")
    found = by_name(castalia.MLPClassifier(hidden=(16,), lr=0.01), data.features(), data.labels())
    assert all(check.passed for check in found.values())


def test_no_module_of_the_package_hides_a_public_name():
    found = {name: getattr(castalia.diagnose, name) for name in castalia.diagnose.__all__}
    again = {name: getattr(castalia.diagnose, name) for name in castalia.diagnose.__all__}
    assert found == again
    assert not [name for name, value in again.items() if isinstance(value, ModuleType)]


def test_pictures_can_be_checked():
    from castalia.data.images import as_images
    from castalia.testing.toys import stripes

    X, y = stripes(60)
    estimator = castalia.ConvNetClassifier(widths=(8,), convs=1, lr=0.01)
    found = {check.name: check for check in preflight(estimator, as_images(X), y, seconds=20)}
    assert found["initial-loss"].passed
    assert found["input-matters"].passed


def test_a_check_whose_time_is_up_before_it_can_tell_says_nothing():
    found = [check.name for check in preflight(castalia.MLPClassifier(), *toy(), seconds=1e-6)]
    assert "tiny-fit" not in found
    assert found[0] == "initial-loss"
