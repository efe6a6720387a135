"""Answers scored by scikit-learn's scorers give what the scorers give of the model itself."""

import math

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import LinearRegression
from sklearn.metrics import get_scorer, roc_auc_score
from sklearn.naive_bayes import GaussianNB

from castalia.errors import InvalidParameter
from castalia.evaluate import higher_is_better, metric, scores
from castalia.evaluate.class_scores import CLASS_SCORES
from castalia.evaluate.scorers import answer_score, check_scorer, scorer_names

X, Y = load_iris(return_X_y=True)


@pytest.mark.filterwarnings("ignore")  # scikit-learn's, of scores that say little
@pytest.mark.parametrize("classes", [2, 3])
def test_every_scorer_of_a_classification(classes):
    rows = np.flatnonzero(classes > Y)
    model = GaussianNB().fit(X[rows][::9], Y[rows][::9])  # has no decision function
    said = model.predict(X[rows]), model.predict_proba(X[rows])
    compared = 0
    for name in scorer_names("classification"):
        found = answer_score(name, Y[rows], *said, classes)
        try:
            expected = get_scorer(name)(model, X[rows], Y[rows])
        except ValueError:  # of two classes only
            assert math.isnan(found)
            continue
        assert found == pytest.approx(expected, abs=1e-12, nan_ok=True), name
        compared += 1
    assert compared > 15


def test_every_scorer_of_a_regression():
    rows, numbers = load_diabetes(return_X_y=True)
    model = LinearRegression().fit(rows, numbers)
    for name in scorer_names("regression"):
        expected = get_scorer(name)(model, rows, numbers)
        assert answer_score(name, numbers, model.predict(rows)) == pytest.approx(expected), name
    assert {"r2", "neg_median_absolute_error"} <= set(scorer_names("regression"))


def test_quick_scores_of_classes_are_those_of_scores():
    rng = np.random.default_rng(0)
    for classes in (2, 4):
        table = rng.dirichlet(np.ones(classes), 80)
        code, said = rng.integers(0, classes, 80), table.argmax(axis=1)
        expected = scores("classification", code, said, table, range(classes))
        for name, quick in CLASS_SCORES.items():
            assert quick(code, said, table) == pytest.approx(expected[name], abs=1e-9), name
    tied = rng.integers(0, 4, (80, 1)) / 4
    area = CLASS_SCORES["roc_auc"](code % 2, said, np.hstack([1 - tied, tied]))
    assert area == pytest.approx(roc_auc_score(code % 2, tied))
    assert math.isnan(CLASS_SCORES["roc_auc"](np.zeros(3, int), said[:3], table[:3]))


def test_a_scorer_is_a_metric_of_which_more_is_better():
    assert higher_is_better("neg_median_absolute_error")
    assert metric("average_precision").label == "average precision"
    assert not metric("neg_mean_squared_error").fraction
    with pytest.raises(InvalidParameter, match="Did you mean `average_precision`"):
        metric("averge_precision")


def test_a_scorer_of_another_task_is_refused():
    check_scorer("roc_auc_ovr", "classification", ("accuracy",))
    check_scorer("accuracy", "classification", ("accuracy",))
    with pytest.raises(InvalidParameter, match="must be `r2` for a regression, or a scorer of sci"):
        check_scorer("roc_auc", "regression", ("r2",))
    with pytest.raises(InvalidParameter, match="must be `bleu` for a translation; got 'r2'"):
        check_scorer("r2", "translation", ("bleu",))


def test_a_decision_without_probabilities_is_sure_of_itself():
    said = np.array([0, 1, 1, 0])
    assert answer_score("roc_auc", np.array([0, 1, 0, 0]), said, None, 2) == pytest.approx(5 / 6)
