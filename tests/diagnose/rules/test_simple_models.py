"""Least squares and nearest neighbours, beside scikit-learn's."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from castalia.diagnose.rules import fit_rules
from castalia.diagnose.rules.simple_models import best_of_simple

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4)) * [1, 10, 100, 0.1]


def theirs(model, y, scoring):
    folds = KFold(3, shuffle=True, random_state=0)
    return cross_val_score(make_pipeline(StandardScaler(), model), X, y, cv=folds, scoring=scoring)


def test_a_line_is_explained_as_well_as_by_scikit_learn():
    y = X @ [1.0, 0.1, 0.01, 3.0] + RNG.normal(size=300)
    name, score = best_of_simple(X, y, classes=False)
    assert name == "linear model"
    assert score == pytest.approx(theirs(Ridge(), y, "r2").mean(), abs=0.02)


def test_a_ring_is_told_apart_by_neighbours_as_well_as_by_scikit_learn():
    y = ((X / [1, 10, 100, 0.1]) ** 2).sum(axis=1) > 3
    name, score = best_of_simple(X, y.astype(int), classes=True)
    assert name == "nearest-neighbour model"
    assert score == pytest.approx(theirs(KNeighborsClassifier(7), y, "accuracy").mean(), abs=0.04)


def test_the_rules_import_no_scikit_learn():
    with open(fit_rules.__file__) as file:
        assert "sklearn" not in file.read()
