"""What an ensemble is for, which is said before it is fitted and never guessed."""

import threading

import joblib
import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, is_classifier, is_regressor
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import AdaBoostClassifier, GradientBoostingRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from castalia import (
    AdaBoost,
    Bagging,
    DeepEnsemble,
    DropoutEnsemble,
    GradientBoost,
    MLPRegressor,
    SnapshotEnsemble,
    WeightAverage,
)
from castalia.errors import InvalidData, InvalidParameter
from castalia.models.ensemble.likely_task import likely_task
from castalia.testing.toys import moons, sine

EITHER = [Bagging, DeepEnsemble, DropoutEnsemble, GradientBoost, SnapshotEnsemble, WeightAverage]


@pytest.mark.parametrize("kind", EITHER)
def test_the_task_is_known_before_the_fit_and_kept_by_it(kind):
    assert is_classifier(kind(task="classification"))
    assert is_regressor(kind(task="regression"))
    X, y = sine(40)
    short = {} if kind in (DropoutEnsemble, WeightAverage) else {"members": 2}
    model = kind(task="regression", random_state=0, **short).fit(X, y)
    assert is_regressor(model)
    assert model.predict(X).dtype.kind == "f"


def test_labels_are_not_regressed_silently():
    X, labels = load_iris(return_X_y=True)
    message = r"must hold continuous quantities .* 3 different values may be classes\. Set task="
    with pytest.raises(InvalidData, match=message):
        GradientBoost(members=3).fit(X, labels)
    model = GradientBoost(members=3, task="classification").fit(X, labels)
    assert model.score(X, labels) > 0.95
    assert GradientBoost(members=3, task="regression").fit(X, labels).predict(X).std() > 0


@pytest.mark.parametrize("kind", [Bagging, DeepEnsemble, AdaBoost])
def test_quantities_are_not_classified_silently(kind):
    X, y = load_diabetes(return_X_y=True)  # whole numbers, to scikit-learn classes
    with pytest.raises(InvalidData, match="must hold classes .* 214 different .* continuous quan"):
        kind(members=2).fit(X, y)


def test_a_named_estimator_says_the_task():
    X, y = load_diabetes(return_X_y=True)
    tree = DecisionTreeRegressor(max_depth=3)
    assert Bagging(tree, members=3, random_state=0).fit(X, y).score(X, y) > 0.4  # by position
    labels = load_iris().target
    assert is_regressor(Bagging(tree, members=2).fit(load_iris().data, labels))


def test_parameters_that_contradict_each_other_are_refused():
    for model in (
        Bagging(MLPRegressor(), task="classification"),
        GradientBoost(loss="squared", task="classification"),
        GradientBoost(loss="logistic", task="regression"),
    ):
        with pytest.raises(InvalidParameter, match="`task` must be that of the other parameters"):
            model.fit(*moons(30))
    with pytest.raises(InvalidParameter, match="`task` must be `None` or `classification`"):
        AdaBoost(task="regression").fit(*moons(30))


@pytest.mark.parametrize(
    "y, task",
    [
        (np.array(["a", "b"] * 9), "classification"),
        (np.array([True, False] * 9), "classification"),
        (np.repeat([0.0, 1.0, 2.0], 4), "classification"),
        (np.repeat(np.arange(26), 5), "classification"),
        (np.repeat(np.arange(26), 4), "regression"),
        (np.repeat(np.arange(26.0), 9), "regression"),
        (np.linspace(0, 1, 7), "regression"),
        (np.zeros((5, 2)) + np.eye(5, 2), "regression"),
    ],
)
def test_what_a_target_seems_to_hold(y, task):
    assert likely_task(y) == task


# ---- as scikit-learn's ensembles ----


def test_settings_of_the_default_member_can_be_searched():
    X, y = moons(60)
    grid = {"estimator__hidden": [(2,), (8,)], "estimator__epochs": [2]}
    search = GridSearchCV(Bagging(members=2, random_state=0), grid, cv=2).fit(X, y)
    assert search.best_estimator_.estimators_[0].n_iter_ == 2
    model = Bagging().set_params(estimator__lr=0.5, task="regression")
    assert isinstance(model.estimator, MLPRegressor)
    assert model.estimator.lr == 0.5


def test_importances_are_those_of_scikit_learn():
    X, y = load_diabetes(return_X_y=True)
    ours = GradientBoost(members=10, random_state=0, task="regression").fit(X, y)
    theirs = GradientBoostingRegressor(n_estimators=10, random_state=0).fit(X, y)
    np.testing.assert_allclose(ours.feature_importances_, theirs.feature_importances_, rtol=1e-6)
    X, y = load_breast_cancer(return_X_y=True)
    boost = AdaBoost(members=10, random_state=0).fit(X, y)
    other = AdaBoostClassifier(DecisionTreeClassifier(max_depth=1), n_estimators=10, random_state=0)
    np.testing.assert_allclose(
        boost.feature_importances_, other.fit(X, y).feature_importances_, rtol=1e-6
    )
    bag = Bagging(DecisionTreeClassifier(), members=4, random_state=0).fit(X, y)
    mean = np.mean([tree.feature_importances_ for tree in bag.estimators_], axis=0)
    np.testing.assert_allclose(bag.feature_importances_, mean)
    assert not hasattr(Bagging(DummyClassifier(), members=2).fit(X, y), "feature_importances_")
    assert not hasattr(Bagging(), "feature_importances_")


class Witness(ClassifierMixin, BaseEstimator):
    """A classifier that remembers which thread fitted it, and waits for the other."""

    meeting = threading.Barrier(2, timeout=20)

    def fit(self, X, y):
        self.meeting.wait()
        self.thread_, self.classes_ = threading.get_ident(), np.unique(y)
        return self

    def predict(self, X):
        return self.classes_[np.zeros(len(X), dtype=int)]


@pytest.mark.parametrize("kind", [Bagging, DeepEnsemble])
def test_members_are_fitted_in_several_jobs(kind):
    X, y = moons(40)
    with joblib.parallel_config("threading"):
        model = kind(Witness(), members=2, n_jobs=2).fit(X, y)
        assert len({member.thread_ for member in model.estimators_}) == 2
        tree = DecisionTreeClassifier(max_features=1)
        one, two = (kind(tree, members=4, n_jobs=n, random_state=0).fit(X, y) for n in (None, 2))
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    with pytest.raises(InvalidParameter, match="`n_jobs` must be a whole number other than 0"):
        kind(n_jobs=0).fit(X, y)
