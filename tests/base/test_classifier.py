"""Targets to tensors, outputs to predictions."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from castalia import MLPClassifier, MLPRegressor, Training
from castalia.base.targets.class_codec import fit_temperature
from castalia.testing.toys import sine

FAST = {"hidden": (4,), "epochs": 2, "random_state": 0}


def test_the_temperature_minimises_the_log_loss():
    random = torch.Generator().manual_seed(0)
    logits = 6 * torch.randn(500, 3, generator=random)
    y = torch.distributions.Categorical(logits=logits / 2.5).sample()
    found = fit_temperature(logits, y)
    grid = [float(F.cross_entropy(logits.double() / t, y)) for t in np.linspace(0.5, 6, 56)]
    assert float(F.cross_entropy(logits.double() / found, y)) <= min(grid) + 1e-6
    assert found == pytest.approx(2.5, rel=0.3)


def test_targets_are_standardised_and_predictions_brought_back():
    X, y = sine(100)
    training = Training(validation=0, precision="float64")
    plain = MLPRegressor(**FAST, training=training).fit(X, y)
    moved = MLPRegressor(**FAST, training=training).fit(X, 1e6 + 1e3 * y)
    np.testing.assert_allclose((moved.predict(X) - 1e6) / 1e3, plain.predict(X), atol=1e-6)
    assert plain.target_mean_[0] == pytest.approx(y.mean())
    assert plain.target_scale_[0] == pytest.approx(y.std())


def test_a_constant_target_is_learnt_exactly():
    X, _ = sine(50)
    model = MLPRegressor(hidden=(4,), epochs=100, lr=0.01, random_state=0).fit(X, np.full(50, 7.0))
    np.testing.assert_allclose(model.predict(X), 7.0, atol=0.2)
    assert model.target_scale_[0] == 1


def test_predictions_are_float64_and_probabilities_sum_to_one():
    X, y = sine(60)
    assert MLPRegressor(**FAST).fit(X, y).predict(X).dtype == np.float64
    probability = MLPClassifier(**FAST).fit(X, y > 0).predict_proba(X)
    np.testing.assert_allclose(probability.sum(axis=1), 1, atol=1e-6)
