"""AdaBoost and gradient boosting beyond the contract."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import AdaBoostClassifier, GradientBoostingClassifier
from sklearn.ensemble import GradientBoostingRegressor as Theirs
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tests.sklearn_checks import learns_alike

import castalia
from castalia import AdaBoost, GradientBoost, MLPClassifier
from castalia.errors import DamagedFile, InvalidParameter
from castalia.models.ensemble.trees import restore_tree, tree_state
from castalia.testing.toys import blobs, moons, sine


def weighted(n=300, classes=3):
    X, y = blobs(n, classes=classes)
    random = np.random.default_rng(0)
    return X + random.normal(scale=2, size=X.shape), y, random.uniform(0.2, 3, n)


# ---- AdaBoost ----


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    classes=st.integers(2, 4),
    members=st.integers(1, 12),
    noise=st.floats(0, 0.4),
)
def test_the_training_error_stays_under_the_product_bound(seed, classes, members, noise):
    random = np.random.default_rng(seed)
    X = random.normal(size=(60, 2))
    y = np.where(random.random(60) < noise, random.integers(0, classes, 60), 0)
    y = (y + (X[:, 0] > 0) + (X[:, 1] > X[:, 0])) % classes
    if len(np.unique(y)) < 2:
        y[0] = 1 - y[0]
    weight = random.uniform(0.1, 2, 60)
    model = AdaBoost(members=members, random_state=0).fit(X, y, weight)
    assert (model.train_errors_ <= model.bounds_ + 1e-12).all()
    if classes == 2 and model.errors_.max() < 0.5 and model.errors_.min() > 0:
        product = np.cumprod(2 * np.sqrt(model.errors_ * (1 - model.errors_)))
        np.testing.assert_allclose(model.bounds_, product)
    last = np.average(model.predict(X) != y, weights=weight)
    assert last == pytest.approx(model.train_errors_[-1], abs=1e-9)


@pytest.mark.parametrize("classes", [2, 3])
def test_errors_and_votes_are_those_of_scikit_learn(classes):
    X, y, weight = weighted(classes=classes)
    stump = DecisionTreeClassifier(max_depth=1)
    ours = AdaBoost(members=15, random_state=0).fit(X, y, weight)
    theirs = AdaBoostClassifier(stump, n_estimators=15, random_state=0).fit(X, y, weight)
    np.testing.assert_allclose(ours.errors_, theirs.estimator_errors_, rtol=1e-6)
    np.testing.assert_allclose(ours.alphas_, theirs.estimator_weights_, rtol=1e-6)
    assert np.array_equal(ours.predict(X), theirs.predict(X))
    assert all(map(np.array_equal, ours.staged_predict(X), theirs.staged_predict(X)))


def test_margins_say_how_sure_the_vote_is():
    X, y = moons(200)
    model = AdaBoost(members=30).fit(X, y)
    margins = model.margins(X, y)
    assert (np.abs(margins) <= 1 + 1e-12).all()
    assert np.array_equal(margins > 0, model.predict(X) == y)
    signed = np.where(y == 1, 1, -1) * model.decision_function(X)
    np.testing.assert_allclose(margins, signed)
    assert np.array_equal(model.predict_proba(X).argmax(axis=1), model.predict(X))


def test_a_member_without_mistakes_ends_the_row():
    X = np.arange(10.0)[:, None]
    model = AdaBoost(members=20).fit(X, (X[:, 0] > 4).astype(int))
    assert len(model.estimators_) == 1
    assert model.errors_.tolist() == [0.0]
    assert model.bounds_[0] < 1e-4


def test_a_member_no_better_than_chance_is_left_out_but_the_first_stays():
    X, y = np.zeros((6, 1)), np.array([0, 1] * 3)
    model = AdaBoost(members=5).fit(X, y)
    assert len(model.estimators_) == 1
    assert model.errors_[0] == pytest.approx(0.5)
    assert set(model.predict(X)) <= {0, 1}


def test_networks_and_linear_models_can_be_boosted():
    X, y = moons(150)
    for weak in (LogisticRegression(), MLPClassifier(hidden=(2,), epochs=5, lr=0.05)):
        assert AdaBoost(estimator=weak, members=3, random_state=0).fit(X, y).score(X, y) > 0.7


@pytest.mark.parametrize("weak", [KNeighborsClassifier(), DecisionTreeRegressor()])
def test_what_cannot_be_boosted_is_named(weak):
    with pytest.raises(InvalidParameter, match=f"`sample_weight`; got {type(weak).__name__}"):
        AdaBoost(estimator=weak).fit(*moons(20))


# ---- gradient boosting ----


def test_squared_error_is_that_of_scikit_learn():
    X, y = sine(300)
    weight = np.random.default_rng(0).uniform(0.2, 3, 300)
    ours = GradientBoost(members=20, random_state=0).fit(X, y, weight)
    theirs = Theirs(n_estimators=20, max_depth=3, random_state=0).fit(X, y, weight)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-6)
    np.testing.assert_allclose(ours.train_losses_, theirs.train_score_, rtol=1e-6)
    for one, other in zip(ours.staged_predict(X), theirs.staged_predict(X), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
def test_logistic_loss_does_as_well_as_scikit_learn(classes):
    X, y, _ = weighted(600, classes)
    ours = GradientBoost(members=30, loss="logistic").fit(X[:300], y[:300])
    theirs = GradientBoostingClassifier(n_estimators=30, random_state=0).fit(X[:300], y[:300])
    score = log_loss(y[300:], theirs.predict_proba(X[300:]))
    assert log_loss(y[300:], ours.predict_proba(X[300:])) < score + 0.05
    assert (np.diff(ours.train_losses_) < 0).all()


def test_a_leaf_of_the_first_step_is_newtons_step():
    X = np.array([[0.0], [0.0], [1.0], [1.0], [1.0], [1.0]])
    y = np.array([0, 1, 1, 1, 1, 0])
    model = GradientBoost(members=1, lr=1.0, loss="logistic").fit(X, y)
    p = 4 / 6
    steps = [(1 - 2 * p) / (2 * p * (1 - p)), (3 - 4 * p) / (4 * p * (1 - p))]
    F = model.start_[0] + np.array(steps)
    expected = 1 / (1 + np.exp(-F))
    np.testing.assert_allclose(model.predict_proba([[0.0], [1.0]])[:, 1], expected)


def test_a_smaller_factor_needs_more_members():
    X, y = sine(200)
    quick, slow = (GradientBoost(members=10, lr=lr).fit(X, y) for lr in (0.5, 0.05))
    assert quick.train_losses_[-1] < 0.5 * slow.train_losses_[-1]


def test_scikit_learn_finds_no_fault_with_the_logistic_loss():
    learns_alike(GradientBoost(members=5, loss="logistic"))


@pytest.mark.parametrize("weak", [KNeighborsRegressor(), DecisionTreeClassifier()])
def test_what_cannot_be_added_up_is_named(weak):
    with pytest.raises(InvalidParameter, match=f"`sample_weight`; got {type(weak).__name__}"):
        GradientBoost(estimator=weak).fit(*sine(20))


# ---- trees in saved models ----


@pytest.mark.parametrize("model", [AdaBoost(members=4), GradientBoost(members=4, loss="logistic")])
def test_boosted_trees_are_saved_as_arrays(tmp_path, model):
    X, y = blobs(90)
    X = np.where(np.arange(90)[:, None] % 7 == 3, np.nan, X)
    model = model.set_params(random_state=0).fit(X, y)
    loaded = castalia.load(castalia.save(model, tmp_path / "model"))
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
    unfitted = AdaBoost(estimator=DecisionTreeClassifier(max_depth=2))
    assert castalia.load(castalia.save(unfitted, tmp_path / "empty")).estimator.max_depth == 2


@pytest.mark.parametrize(
    "column, value",
    [("left_child", 99), ("left_child", 0), ("right_child", -1), ("feature", 7), ("feature", -3)],
)
def test_a_tree_whose_nodes_lead_astray_is_refused(column, value):
    X, y = moons(50)
    state = tree_state(DecisionTreeClassifier(max_depth=2).fit(X, y))
    assert np.array_equal(restore_tree(DecisionTreeClassifier, state).tree_.value, state["values"])
    state["nodes"][column][0] = value
    with pytest.raises(DamagedFile, match="decision tree make no sense"):
        restore_tree(DecisionTreeClassifier, state)
