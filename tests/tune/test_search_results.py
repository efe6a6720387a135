"""What a search leaves, beside scikit-learn's."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import GridSearchCV, KFold

from castalia.errors import InvalidParameter
from castalia.tune import BayesianSearch, GridSearch

X = np.random.default_rng(0).normal(size=(60, 3))
y = (X @ [1.0, -1.0, 0.5] + 0.8 * np.random.default_rng(1).normal(size=60) > 0).astype(int)
GRID = {"C": [1e-3, 1e-2, 1.0], "class_weight": [None, "balanced"]}
SEVERAL = {"recall": "recall", "f1": make_scorer(f1_score), "neg_log_loss": "neg_log_loss"}


def same(ours, theirs):
    assert set(ours) == {*theirs, "state"}
    for name in theirs:
        if "time" in name:
            assert (np.asarray(ours[name]) >= 0).all()
        elif name.startswith(("split", "mean", "std")):
            np.testing.assert_allclose(ours[name], theirs[name])
        else:
            assert list(ours[name]) == list(theirs[name])


@pytest.mark.parametrize("refit", ["recall", "neg_log_loss"])
def test_several_scores_are_those_of_scikit_learn(refit):
    ours = GridSearch(LogisticRegression(), GRID, cv=KFold(3), scoring=SEVERAL, refit=refit)
    theirs = GridSearchCV(LogisticRegression(), GRID, cv=KFold(3), scoring=SEVERAL, refit=refit)
    ours.fit(X, y)
    theirs.fit(X, y)
    same(ours.cv_results_, theirs.cv_results_)
    assert ours.best_params_ == theirs.best_params_
    assert ours.best_index_ == theirs.best_index_
    assert ours.best_score_ == pytest.approx(theirs.best_score_)
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y))
    assert ours.multimetric_
    assert theirs.multimetric_


def test_one_score_has_the_columns_of_scikit_learn_and_ties_share_a_rank():
    grid = {"C": [1.0, 1.0, 1e-3]}
    ours = GridSearch(LogisticRegression(), grid, cv=KFold(3)).fit(X, y)
    theirs = GridSearchCV(LogisticRegression(), grid, cv=KFold(3)).fit(X, y)
    same(ours.cv_results_, theirs.cv_results_)
    assert not ours.multimetric_


def test_a_list_of_names_is_searched_by_the_one_that_refit_names():
    space = {"C": [1e-3, 1.0]}
    settings = {"cv": 3, "scoring": ["accuracy", "neg_log_loss"], "trials": 2, "random_state": 0}
    found = BayesianSearch(LogisticRegression(), space, refit="neg_log_loss", **settings).fit(X, y)
    assert found.best_score_ == found.cv_results_["mean_test_neg_log_loss"].max() < 0
    first = BayesianSearch(LogisticRegression(), space, **settings).fit(X, y)
    assert first.best_score_ == first.cv_results_["mean_test_accuracy"].max() > 0


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"scoring": ["f1", "recal"]}, "got 'recal'. Did you mean `recall`"),
        ({"scoring": ["f1"], "refit": "recall"}, "`refit` must be True, False or one of .*f1"),
        ({"scoring": {"f1": 3}}, "`scoring` must be a name, .*; got 3"),
        ({"scoring": []}, r"`scoring` must be a name, .*; got \[\]"),
    ],
)
def test_wrong_scores_are_refused_before_the_first_trial(settings, message):
    with pytest.raises(InvalidParameter, match=message):
        GridSearch(LogisticRegression(), GRID, cv=3, **settings).fit(X, y)


def test_the_figure_shows_trials_the_best_so_far_and_those_given_up():
    space = {"C": [1.0, 0.5, 0.3, 0.2, 1e-6, 2.0]}
    found = GridSearch(LogisticRegression(), space, cv=5, prune=True, scoring="neg_log_loss")
    ax = found.fit(X, y).plot()
    lines = {line.get_label(): line for line in ax.lines}
    assert set(lines) == {"trial", "given up", "best so far"}
    assert list(lines["given up"].get_xdata()) == [5]
    assert list(lines["trial"].get_xdata()) == [1, 2, 3, 4, 6]
    assert lines["best so far"].get_ydata()[-1] == found.best_score_
    assert lines["given up"].get_ydata()[0] < min(lines["trial"].get_ydata())
    assert ax.get_facecolor()[3] == 0  # the house style has no background
    assert ax.get_ylabel() == "mean score over 5 folds"
