"""Dense classifiers and regressors beyond the contract."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, log_loss

from castalia import MLPClassifier, MLPRegressor, Training
from castalia.errors import InvalidData, InvalidParameter
from castalia.testing.toys import blobs, moons, sine

SMALL = {"hidden": (16,), "epochs": 30, "lr": 0.02, "random_state": 0}


def test_a_20_64_64_10_classifier_has_6154_parameters_and_is_fitted_and_evaluated():
    random = np.random.default_rng(0)
    y = np.arange(400) % 10
    X = 2 * random.normal(size=(10, 20))[y] + random.normal(size=(400, 20))
    model = MLPClassifier(hidden=(64, 64), epochs=20, random_state=0).fit(X[:300], y[:300])
    assert sum(p.numel() for p in model.module_.parameters()) == 6154
    assert model.score(X[300:], y[300:]) > 0.95


def test_two_moons_are_told_apart():
    X, y = moons(1000, noise=0.1)
    model = MLPClassifier(hidden=(32, 32), epochs=60, lr=0.01, random_state=0)
    assert model.fit(X[:600], y[:600]).score(X[600:], y[600:]) > 0.99


@pytest.mark.parametrize("names", [[10, 20, 30], ["cat", "dog", "eel"], [True, False]])
def test_classes_of_any_type_come_back(names):
    X, y = blobs(150, classes=len(names))
    model = MLPClassifier(**SMALL).fit(X, np.array(names)[y])
    assert set(model.predict(X).tolist()) == set(names)
    assert model.classes_.tolist() == sorted(names)
    assert model.score(X, np.array(names)[y]) > 0.9
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1, atol=1e-5)


def test_several_labels_at_once():
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 3))
    Y = np.column_stack([X[:, 0] > 0, X[:, 1] > 0.5, X[:, 0] + X[:, 2] > 0]).astype(int)
    model = MLPClassifier(**SMALL).fit(X, Y)
    assert model.predict(X).shape == (300, 3)
    assert (model.predict(X) == Y).mean() > 0.93
    assert np.array_equal(model.predict(X), (model.predict_proba(X) > 0.5).astype(int))


def test_class_weights_with_several_labels_are_refused():
    Y = np.array([[0, 1], [1, 0], [1, 1], [0, 0]] * 5)
    with pytest.raises(InvalidParameter, match="`class_weight` .* exclusive classes"):
        MLPClassifier(class_weight="balanced").fit(np.arange(20.0)[:, None], Y)


def test_several_targets_at_once():
    X, y = sine(200)
    Y = np.column_stack([y, 100 - 50 * y, X[:, 0]])
    model = MLPRegressor(**{**SMALL, "epochs": 60}).fit(X, Y)
    assert model.predict(X).shape == Y.shape
    assert model.score(X, Y) > 0.9
    one = MLPRegressor(**SMALL).fit(X, Y[:, :1])
    assert one.predict(X).shape == (200, 1)


# ---- class weights ----


def uneven():
    X, y = blobs(200, classes=2)
    kept = (y == 0) | (np.arange(200) % 10 == 1)
    return X[kept] * 0.6, y[kept]


@pytest.mark.parametrize("setting", ["balanced", {0: 0.5, 1: 4.0}], ids=str)
def test_class_weights_equal_sample_weights(setting):
    X, y = uneven()
    training = Training(validation=0, precision="float64")
    counts = np.bincount(y)
    per_class = len(y) / (2 * counts) if setting == "balanced" else np.array([0.5, 4.0])
    by_class = MLPClassifier(**SMALL, class_weight=setting, training=training).fit(X, y)
    by_row = MLPClassifier(**SMALL, training=training).fit(X, y, sample_weight=per_class[y])
    np.testing.assert_allclose(by_class.predict_proba(X), by_row.predict_proba(X), atol=1e-9)
    plain = MLPClassifier(**SMALL, training=training).fit(X, y)
    assert by_class.predict_proba(X)[:, 1].mean() > plain.predict_proba(X)[:, 1].mean()


@pytest.mark.parametrize(
    "setting, message",
    [({5: 1.0}, "must name classes of y; got 5"), ("even", "must be None, 'balanced' or a dict")],
    ids=str,
)
def test_a_wrong_class_weight_is_named(setting, message):
    with pytest.raises(InvalidParameter, match=message):
        MLPClassifier(class_weight=setting).fit(*moons(40))


# ---- calibration and abstention ----


def noisy(n, seed):
    """Labels that are right three times in four: certainty is never warranted."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 4))
    y = (X[:, 0] > 0).astype(int)
    return X, np.where(random.random(n) < 0.25, 1 - y, y)


def test_calibration_cools_an_overconfident_network_and_lowers_the_log_loss():
    X, y = noisy(400, 0)
    fresh = noisy(1000, 1)
    own = {"hidden": (64,), "epochs": 120, "lr": 0.01, "random_state": 0}
    training = Training(validation=0.3)
    hot = MLPClassifier(**own, training=training).fit(X, y)
    cool = MLPClassifier(**own, training=training, calibrate=True).fit(X, y)
    assert hot.temperature_ == 1.0
    assert cool.temperature_ > 1.3
    assert np.array_equal(hot.predict(fresh[0]), cool.predict(fresh[0]))
    losses = [log_loss(fresh[1], model.predict_proba(fresh[0])) for model in (hot, cool)]
    assert losses[1] < losses[0]


def test_calibration_without_validation_rows_is_refused():
    with pytest.raises(InvalidParameter, match="`calibrate=True` needs validation rows"):
        MLPClassifier(calibrate=True, epochs=1, training=Training(validation=0)).fit(*moons(40))


@pytest.mark.parametrize("coverage", [0.5, 0.8, 1.0])
def test_abstaining_keeps_its_coverage_and_answers_better(coverage):
    X, y = moons(1200, noise=0.4)
    model = MLPClassifier(**SMALL, training=Training(validation=0.3)).fit(X[:800], y[:800])
    answers = model.abstain(X[800:], coverage=coverage)
    given = ~np.ma.getmaskarray(answers)
    assert given.mean() == pytest.approx(coverage, abs=0.08)
    answered = accuracy_score(y[800:][given], answers[given])
    assert answered >= model.score(X[800:], y[800:])
    if coverage == 0.5:
        assert answered > model.score(X[800:], y[800:]) + 0.03


def test_accuracy_does_not_fall_as_coverage_falls():
    X, y = moons(2400, noise=0.4)
    training = Training(validation=0.3)
    model = MLPClassifier(**SMALL, calibrate=True, training=training).fit(X[:800], y[:800])
    accuracies = []
    for coverage in (1.0, 0.8, 0.6, 0.4, 0.2):
        answers = model.abstain(X[800:], coverage=coverage)
        given = ~np.ma.getmaskarray(answers)
        accuracies.append(accuracy_score(y[800:][given], answers[given]))
    assert accuracies == sorted(accuracies)
    assert accuracies[-1] > accuracies[0] + 0.05


def test_a_coverage_outside_0_and_1_is_named():
    model = MLPClassifier(**{**SMALL, "epochs": 1}).fit(*moons(40))
    with pytest.raises(InvalidParameter, match="`coverage` must be above 0 .* got 1.5"):
        model.abstain(moons(40)[0], coverage=1.5)


# ---- frames ----


def frame(n=300, seed=0):
    random = np.random.default_rng(seed)
    colour = random.choice(["red", "green", "blue"], n)
    size = random.normal(size=n)
    y = np.where((colour == "red") ^ (size > 0), "yes", "no")
    return pd.DataFrame({"colour": colour, "size": size, "noise": random.normal(size=n)}), y


def test_a_frame_with_categories_and_missing_values_is_fitted():
    X, y = frame()
    X.loc[::17, "size"] = np.nan
    X.loc[::23, "colour"] = None
    model = MLPClassifier(**{**SMALL, "epochs": 60}).fit(X, y)
    assert model.score(X, y) > 0.85
    assert model.spec_.categories


def test_unseen_categories_and_missing_values_still_get_an_answer():
    X, y = frame()
    model = MLPClassifier(**SMALL).fit(X, y)
    strange = pd.DataFrame({"colour": ["violet", None], "size": [0.5, np.nan], "noise": [0.0, 0.0]})
    probability = model.predict_proba(strange)
    assert probability.shape == (2, 2)
    assert np.isfinite(probability).all()


def test_missing_numbers_in_an_array_are_flagged():
    X, y = moons(200)
    X = X.copy()
    X[:60, 0] = np.nan
    model = MLPClassifier(**SMALL).fit(X, y)
    assert model.spec_.inputs == 3  # the two columns and a flag
    assert model.score(X, y) > 0.8


def test_words_as_the_target_of_a_regression_are_refused():
    with pytest.raises(InvalidData, match="must hold numbers; got 'a'"):
        MLPRegressor().fit(np.zeros((2, 1)), np.array(["a", "b"]))


def test_a_matrix_of_classes_is_refused():
    with pytest.raises(InvalidData, match="must hold only 0 and 1"):
        MLPClassifier().fit(np.zeros((3, 1)), np.array([[0, 2], [1, 0], [2, 1]]))
