"""The size of fitted models."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from castalia import DeepEnsemble, MLPClassifier, Ridge, Training
from castalia.errors import InvalidParameter
from castalia.evaluate import complexity
from castalia.testing.toys import moons

X, Y = moons(60)
NET = MLPClassifier(
    hidden=(8, 5),
    epochs=1,
    random_state=0,
    training=Training(validation=0, precision="float32"),
)
PARAMETERS = 2 * 8 + 8 + 8 * 5 + 5 + 5 * 2 + 2


def test_a_network_has_the_weights_of_its_layers_and_two_flops_a_product():
    model = NET.fit(X, Y)
    found = complexity(model, X)
    assert found.parameters == found.trainable == PARAMETERS
    assert found.bytes == 4 * PARAMETERS
    assert found.flops == 2 * (2 * 8 + 8 * 5 + 5 * 2)
    assert complexity(model).flops is None


def test_frozen_weights_are_parameters_that_training_does_not_move():
    model = NET.fit(X, Y)
    model.module_.layers[0].requires_grad_(False)
    found = complexity(model)
    assert (found.parameters, found.trainable) == (PARAMETERS, PARAMETERS - 24)


def test_a_linear_model_has_its_coefficients_and_the_constant():
    ours = complexity(Ridge().fit(X, Y.astype(float)), X)
    theirs = complexity(LogisticRegression().fit(X, Y), X)
    assert ours == theirs
    assert (ours.parameters, ours.bytes, ours.flops) == (3, 24, 4)
    bare = Ridge(fit_intercept=False).fit(X, Y.astype(float))
    assert complexity(bare).parameters == 2


def test_the_members_of_an_ensemble_add_up():
    model = DeepEnsemble(estimator=NET, members=3, random_state=0).fit(X, Y)
    one, all_of_them = complexity(NET.fit(X, Y), X), complexity(model, X)
    assert all_of_them.parameters == 3 * one.parameters
    assert all_of_them.flops == 3 * one.flops
    assert complexity(model).flops is None


def test_the_network_is_left_in_its_mode():
    model = NET.fit(X, Y)
    model.module_.train()
    complexity(model, X)
    assert model.module_.training


def test_a_model_without_weights_is_refused():
    with pytest.raises(InvalidParameter, match="got DecisionTreeClassifier"):
        complexity(DecisionTreeClassifier().fit(X, np.asarray(Y)))
