"""Bagging beyond the contract."""

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.ensemble import BaggingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import castalia
from castalia import Bagging, MLPClassifier, MLPRegressor
from castalia.errors import InvalidData, InvalidParameter
from castalia.testing.toys import blobs, moons, sine


def test_classes_of_any_type_come_back():
    X, y = blobs(120)
    names = np.array(["cat", "dog", "eel"])[y]
    model = Bagging(members=3, random_state=0).fit(X, names)
    assert model.classes_.tolist() == ["cat", "dog", "eel"]
    assert model.score(X, names) > 0.9
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_several_targets_of_a_regressor():
    X, y = sine(150)
    Y = np.column_stack([y, 3 - 2 * y])
    net = MLPRegressor(hidden=(16,), epochs=80, lr=0.02)
    model = Bagging(estimator=net, members=3, random_state=0, oob_score=True).fit(X, Y)
    assert model.predict(X).shape == Y.shape == model.predict_std(X).shape
    assert model.score(X, Y) > 0.8


def test_the_score_out_of_the_bag_is_near_that_on_new_rows():
    X, y = moons(600, noise=0.3)
    tree = DecisionTreeClassifier()
    model = Bagging(estimator=tree, members=40, random_state=0, oob_score=True)
    model.fit(X[:300], y[:300])
    assert model.score(X[:300], y[:300]) > 0.99
    assert model.oob_score_ == pytest.approx(model.score(X[300:], y[300:]), abs=0.05)
    theirs = BaggingClassifier(tree, 40, oob_score=True, random_state=0).fit(X[:300], y[:300])
    assert model.oob_score_ == pytest.approx(theirs.oob_score_, abs=0.04)


def test_rows_that_all_members_saw_have_no_answer_out_of_the_bag():
    X, y = sine(50)
    tree = DecisionTreeRegressor()
    model = Bagging(estimator=tree, members=2, random_state=0, oob_score=True).fit(X, y)
    holes = np.isnan(model.oob_prediction_)
    assert 0 < holes.sum() < 50


def test_a_vote_counts_heads_and_an_average_counts_confidence():
    X, y = blobs(90, classes=2)
    model = Bagging(estimator=LogisticRegression(), members=5, random_state=0).fit(X, y)
    each = np.stack([m.predict_proba(X)[:, 1] for m in model.estimators_])
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], each.mean(axis=0))
    model.combine = "vote"
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], (each > 0.5).mean(axis=0))


@pytest.mark.parametrize(
    "member", [KNeighborsClassifier(1), LinearSVC(), MLPClassifier(hidden=(8,), epochs=20, lr=0.03)]
)
def test_any_classifier_can_be_a_member(member):
    X, y = moons(100)
    model = Bagging(estimator=member, members=3, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.8
    assert model.predict_proba(X).shape == (100, 2)


def test_a_member_without_weights_gets_its_rows_repeated():
    X, y = sine(60)
    model = Bagging(estimator=KNeighborsRegressor(1), members=2, random_state=0).fit(X, y)
    assert [m.n_samples_fit_ for m in model.estimators_] == [60, 60]


def test_a_member_that_missed_a_class_has_no_say_on_it():
    X, y = blobs(60)
    y = np.where(np.arange(60) == 5, 2, y % 2)
    model = Bagging(estimator=DecisionTreeClassifier(), members=8, random_state=0).fit(X, y)
    short = [m for m in model.estimators_ if len(m.classes_) == 2]
    assert short
    assert model.predict_proba(X).shape == (60, 3)


def test_members_differ_and_each_is_an_estimator_of_its_own():
    X, y = moons(100)
    model = Bagging(members=3, random_state=0).fit(X, y)
    answers = [member.predict_proba(X) for member in model.estimators_]
    assert not np.allclose(answers[0], answers[1])
    assert all(isinstance(member, MLPClassifier) for member in model.estimators_)
    np.testing.assert_allclose(model.predict_proba(X), np.mean(answers, axis=0), rtol=1e-5)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_both_widths_of_numbers_and_frames_work(kind):
    X, y = moons(150)
    model = Bagging(members=2, random_state=0).fit(X.astype(kind), y)
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(c=np.where(y > 0, "u", "v"))
    assert model.score(X.astype(kind), y) > 0.8
    assert Bagging(members=2, random_state=0).fit(frame, y).score(frame, y) > 0.95


@pytest.mark.parametrize(
    "member", [MLPRegressor(hidden=(4,), epochs=3), DecisionTreeRegressor(max_depth=3)]
)
def test_nested_members_are_saved_without_pickle(tmp_path, member):
    X, y = sine(60)
    model = Bagging(estimator=member, members=3, random_state=0).fit(X, y)
    loaded = castalia.load(castalia.save(model, tmp_path / "model"))
    assert np.array_equal(loaded.predict(X), model.predict(X))
    assert repr(loaded) == repr(model)
    assert {file.name for file in (tmp_path / "model").iterdir()} == {
        "model.json",
        "weights.safetensors",
    }


def test_a_member_that_cannot_be_saved_is_named(tmp_path):
    X, y = moons(40)
    model = Bagging(estimator=KNeighborsClassifier(), members=2).fit(X, y)
    with pytest.raises(InvalidParameter, match="KNeighborsClassifier"):
        castalia.save(model, tmp_path / "model")


# ---- bad input ----


def test_a_regressor_has_no_vote():
    with pytest.raises(InvalidParameter, match="`combine` must be 'average' for a regressor"):
        Bagging(estimator=MLPRegressor(), combine="vote").fit(*sine(20))


@pytest.mark.parametrize("estimator", ["tree", 3, MLPClassifier])
def test_what_is_no_estimator_is_refused(estimator):
    with pytest.raises(InvalidParameter, match="`estimator` must be an estimator with `fit`"):
        Bagging(estimator=estimator).fit(*moons(20))


@pytest.mark.parametrize(
    "weight, message",
    [
        (np.r_[-1.0, np.ones(19)], "at least 0"),
        (np.zeros(20), "at least one non-zero"),
        (np.r_[np.nan, np.ones(19)], "NaN"),
        (np.ones(19), "sample_weight"),
    ],
    ids=["negative", "zero", "nan", "short"],
)
def test_bad_weights_are_refused(weight, message):
    with pytest.raises(ValueError, match=message):
        Bagging(members=2).fit(*moons(20), sample_weight=weight)


def test_one_member_that_saw_every_row_leaves_no_bag_to_be_out_of(monkeypatch):
    monkeypatch.setattr(
        "castalia.models.ensemble.bagging.bootstrap_counts",
        lambda X, y, weight, *, samples, random, classes: np.ones((samples, len(y)), dtype=int),
    )
    with pytest.raises(InvalidData, match=r"got none of 20 with members=1\. Take more members"):
        Bagging(members=1, oob_score=True).fit(*moons(20))


def test_a_pipeline_is_a_member_like_any_other():
    X, y = moons(80)
    member = make_pipeline(StandardScaler(), DecisionTreeClassifier())
    assert Bagging(estimator=member, members=3, random_state=0).fit(X, y).score(X, y) > 0.9


def test_what_neither_classifies_nor_regresses_is_no_member():
    X, y = moons(80)
    with pytest.raises(InvalidParameter, match="a classifier or a regressor; got KMeans"):
        Bagging(estimator=KMeans(2)).fit(X, y)


@pytest.mark.parametrize(
    "member",
    [DecisionTreeClassifier(max_depth=1), castalia.LogisticRegression()],
    ids=["scikit-learn", "ours"],
)
@pytest.mark.parametrize("kind", [Bagging, castalia.AdaBoost, castalia.DeepEnsemble])
def test_ensembles_take_a_dataset_by_column_names(kind, member):
    X, y = moons(80)
    frame = pd.DataFrame(X, columns=["a", "b"])
    data = castalia.read(frame.assign(label=np.array(["u", "v"])[y]), target="label")
    model = kind(estimator=member, members=3, random_state=0).fit(data)
    turned = castalia.read(frame[["b", "a"]])
    np.testing.assert_array_equal(model.predict(turned), model.predict(data))
