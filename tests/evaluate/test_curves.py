"""Curves over rows, settings and sizes, on problems whose answer is known."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

import castalia
from castalia import MLPRegressor, Training
from castalia.data import read
from castalia.errors import InvalidData, InvalidParameter
from castalia.evaluate import (
    BiasVariance,
    CapacityCurve,
    DoubleDescent,
    EffectiveModelComplexity,
    LearningCurve,
    LossLandscape,
    WorstMistakes,
    to_svg,
)

RNG = np.random.default_rng(0)


def sinusoid(rng, n=25):
    x = rng.uniform(size=(n, 1))
    return x, np.sin(2 * np.pi * x[:, 0]) + 0.3 * rng.normal(size=n)


def test_the_learning_curve_of_least_squares_follows_theory():
    # Excess error of least squares is sigma^2 d / n: a power law with exponent 1.
    X = RNG.normal(size=(3000, 5))
    y = X.sum(axis=1) + RNG.normal(size=3000)
    shown = LearningCurve.from_estimator(
        LinearRegression(), X, y, sizes=[30, 50, 80, 140, 300, 800, 2000], cv=5
    )
    floor, _, exponent = shown.power_law()
    assert floor == pytest.approx(1.0, abs=0.1)
    assert 0.6 < exponent < 1.7
    assert shown.extrapolate(10_000) == pytest.approx(1.0, abs=0.1)
    test = shown.test.mean(axis=1)
    assert (np.diff(test)[:4] < 0).all()  # more experience, better performance
    assert shown.test.mean() > shown.train.mean()


def test_a_power_law_needs_four_sizes():
    shown = LearningCurve(np.array([1, 2]), np.zeros((2, 1)), np.ones((2, 1)))
    with pytest.raises(InvalidData, match="four sizes or more; got 2"):
        shown.power_law()


def test_the_capacity_curve_of_a_polynomial_is_u_shaped():
    X, y = sinusoid(np.random.default_rng(1), 60)
    model = make_pipeline(PolynomialFeatures(), LinearRegression())
    shown = CapacityCurve.from_estimator(
        model, X, y, parameter="polynomialfeatures__degree", values=list(range(1, 16))
    )
    assert shown.interior
    assert 3 <= shown.best <= 7
    train = shown.train.mean(axis=1)
    assert train[-1] < train[0]  # the training error only falls


def test_an_unknown_parameter_is_named():
    with pytest.raises(InvalidParameter, match="got 'aplha'. Did you mean `alpha`"):
        CapacityCurve.from_estimator(Ridge(), [[0.0]], [0.0], parameter="aplha", values=[1])


def test_squared_bias_and_variance_add_up_to_the_error():
    fits = RNG.normal(size=(3, 20, 7))
    found = BiasVariance.from_fits(fits, RNG.normal(size=7), [1, 2, 3])
    np.testing.assert_allclose(found.bias + found.variance, found.error, atol=1e-10)


def test_averaging_complex_models_lowers_the_error():
    x = np.linspace(0, 1, 50)[:, None]
    truth = np.sin(2 * np.pi * x[:, 0])
    model = make_pipeline(PolynomialFeatures(9), Ridge(alpha=1e-6))
    found = BiasVariance.from_sampler(
        model, sinusoid, x, truth, parameter="ridge__alpha", values=[1e-6], repeats=40
    )
    averaged = np.square(found.fits[0].mean(axis=0) - truth).mean()
    assert averaged < 0.2 * found.error[0]
    with pytest.raises(InvalidParameter, match="`repeats` must be at least 2"):
        BiasVariance.from_sampler(
            model, sinusoid, x, truth, parameter="ridge__alpha", values=[1.0], repeats=1
        )


class Features(LinearRegression):
    """Minimum-norm least squares on the first few columns."""

    def __init__(self, features=1):
        super().__init__(fit_intercept=False)
        self.features = features

    def fit(self, X, y):
        self.w_ = np.linalg.lstsq(X[:, : self.features], y, rcond=None)[0]
        return self

    def predict(self, X):
        return X[:, : self.features] @ self.w_


def noisy_plane(n, d=100, noise=0.5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X @ np.linspace(0.3, 0.0, d) + noise * rng.normal(size=n)


def test_double_descent_over_sizes_peaks_where_the_rows_are_just_fitted():
    X, y = noisy_plane(40)
    X_test, y_test = noisy_plane(500, seed=1)
    shown = DoubleDescent.over_sizes(
        Features(), X, y, X_test, y_test, parameter="features", values=range(5, 100, 5)
    )
    assert shown.threshold == 40
    assert abs(shown.peak - 40) <= 5
    assert shown.second_descent


def test_double_descent_over_rows_peaks_where_rows_equal_features():
    X, y = noisy_plane(100, 30)
    X_test, y_test = noisy_plane(500, 30, seed=1)
    shown = DoubleDescent.over_rows(
        Features(30), X, y, X_test, y_test, rows=list(range(10, 100, 5))
    )
    assert abs(shown.peak - 30) <= 5
    assert shown.threshold == 30


def test_the_epochs_of_a_training_are_watched_and_not_steered():
    X, y = noisy_plane(60, 5)
    model = MLPRegressor(hidden=(8,), epochs=6, random_state=0)
    shown = DoubleDescent.over_epochs(model, X, y, X[:20], y[:20])
    assert len(shown.test) == 6
    assert model.training is None
    patient = MLPRegressor(training=Training(patience=2))
    with pytest.raises(InvalidParameter, match="`patience` must be None"):
        DoubleDescent.over_epochs(patient, X, y, X, y)
    with pytest.raises(InvalidData, match="three or more"):
        DoubleDescent([1], [1], [1])


def test_the_effective_complexity_of_a_linear_model_is_its_number_of_features():
    X, y = noisy_plane(80, 20)
    shown = EffectiveModelComplexity.from_estimator(
        Features(20), X, y, rows=range(14, 28), eps=1e-8
    )
    assert shown.complexity == 20
    assert [shown.regime(n) for n in (5, 19, 70)] == [
        "over-parameterised",
        "critical",
        "under-parameterised",
    ]
    with pytest.raises(InvalidParameter, match="must not exceed the 80 rows given; got 90"):
        EffectiveModelComplexity.from_estimator(Features(20), X, y, rows=[90])


def test_planted_wrong_labels_are_the_worst_mistakes():
    X = np.concatenate([RNG.normal(-2, 1, (200, 2)), RNG.normal(2, 1, (200, 2))])
    y = np.repeat([0, 1], 200)
    planted = [3, 77, 250, 399]
    wrong = y.copy()
    wrong[planted] = 1 - wrong[planted]
    model = KNeighborsClassifier(25).fit(X, wrong)
    shown = WorstMistakes.from_estimator(model, X, wrong, most=4)
    assert {m.index for m in shown.mistakes} == set(planted)
    assert "row 3" in to_svg(shown.plot().figure_) or len(shown.mistakes) == 4


def test_the_worst_mistakes_of_a_regression_are_the_largest_gaps():
    X = np.arange(10.0)[:, None]
    y = X[:, 0].copy()
    y[4] += 7
    shown = WorstMistakes.from_estimator(LinearRegression().fit(X, X[:, 0]), X, y, most=1)
    assert shown.mistakes[0].index == 4


DRAWN = {
    "learning": lambda: LearningCurve(
        np.array([1, 10, 100, 1000]), np.zeros((4, 2)), np.random.default_rng(0).random((4, 2))
    ),
    "capacity": lambda: CapacityCurve(["a", "b"], np.zeros((2, 2)), np.ones((2, 2)), "kind"),
    "bias": lambda: BiasVariance.from_fits(np.ones((2, 3, 4)), np.zeros(4), [0.1, 10.0]),
    "descent": lambda: DoubleDescent([1, 2, 300], [1, 0, 0], [1, 100, 1], "features"),
    "complexity": lambda: EffectiveModelComplexity([1, 2], np.array([[0.0], [1.0]])),
    "worst": lambda: WorstMistakes.from_predictions([0, 1], [0.9, 0.1]),
}


@pytest.mark.parametrize("name", DRAWN)
def test_display_draws_on_given_axes(name):
    from matplotlib.figure import Figure

    mine = Figure().add_subplot()
    assert DRAWN[name]().plot(ax=mine).ax_ is mine
    assert DRAWN[name]().plot().figure_ is not mine.figure


def test_a_learning_curve_begins_with_rows_of_each_class():
    X = RNG.normal(size=(60, 3))
    y = np.where(X[:, 0] > 0, "up", "down")
    curve = LearningCurve.from_estimator(castalia.LogisticRegression(), X, y)
    assert 10 <= curve.rows[0] < curve.rows[-1] == 48


def test_targets_in_a_column_and_frames_with_an_index_are_read_row_by_row():
    X = pd.DataFrame(RNG.normal(size=(30, 2)), index=range(100, 130))
    y = X[0] * 2
    wide = castalia.MAPRegression().fit(X.to_numpy(), y)
    flat = WorstMistakes.from_estimator(wide, X.to_numpy(), y)
    column = WorstMistakes.from_estimator(wide, X.to_numpy(), y.to_numpy()[:, None])
    assert [m.loss for m in column.mistakes] == [m.loss for m in flat.mistakes]
    known = EffectiveModelComplexity.from_estimator(Ridge(1e-6), X, y, rows=[5, 20])
    assert known.complexity == 20


def test_the_mistakes_of_a_classifier_without_probabilities_cost_one_each():
    X = RNG.normal(size=(40, 1))
    y = np.where(X[:, 0] > 0, "up", "down")
    model = castalia.LinearSVM().fit(X, y)
    y[3] = "down" if y[3] == "up" else "up"
    shown = WorstMistakes.from_estimator(model, X, y)
    assert 3 in [m.index for m in shown.mistakes]
    assert {m.loss for m in shown.mistakes} == {1.0}
    with pytest.raises(NotFittedError):
        WorstMistakes.from_estimator(castalia.LogisticRegression(), X, y)


def passengers(n=80):
    """Passengers whose class is a number that stands for a kind, not for a quantity."""
    rng = np.random.default_rng(0)
    kind, age = rng.integers(1, 4, n), rng.normal(30, 10, n)
    survived = np.where((kind == 2) ^ (rng.random(n) < 0.1), "yes", "no")
    frame = pd.DataFrame({"age": age, "kind": pd.Categorical(kind), "survived": survived})
    return read(frame, target="survived"), frame


CURVES = {
    "learning": lambda *data: LearningCurve.from_estimator(quick(), *data, cv=3, sizes=[0.5, 1.0]),
    "capacity": lambda *data: CapacityCurve.from_estimator(
        quick(), *data, parameter="epochs", values=[2, 20], cv=3
    ),
    "complexity": lambda *data: EffectiveModelComplexity.from_estimator(
        quick(), *data, rows=[10, 30]
    ),
}


def quick():
    return castalia.MLPClassifier(hidden=(8,), epochs=5, lr=0.03, random_state=0)


@pytest.mark.parametrize("name", CURVES)
def test_a_data_set_gives_the_curve_of_its_frame(name):
    data, frame = passengers()
    whole = CURVES[name](data)
    apart = CURVES[name](frame[["age", "kind"]], frame["survived"])
    np.testing.assert_array_equal(whole.train, apart.train)
    named = CURVES[name](data.with_target(None), "survived")
    np.testing.assert_array_equal(named.train, whole.train)


def test_a_data_set_without_a_target_and_one_on_disk_are_refused(tmp_path):
    data, frame = passengers()
    with pytest.raises(InvalidData, match="`y` must be given when the data set names no target"):
        LearningCurve.from_estimator(quick(), data.with_target(None))
    frame.to_csv(tmp_path / "rows.csv", index=False)
    streamed = read(tmp_path / "rows.csv", target="survived", stream=True)
    with pytest.raises(InvalidData, match="must be in memory; it is streamed"):
        LearningCurve.from_estimator(quick(), streamed)


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda X, y: CapacityCurve.from_estimator(Ridge(), X, y, parameter="alpha", values=[]),
            "`values` must hold one value or more",
        ),
        (
            lambda X, y: EffectiveModelComplexity.from_estimator(Ridge(), X, y, rows=[]),
            "`rows` must hold one size or more",
        ),
        (
            lambda X, y: BiasVariance.from_fits(np.ones((2, 3, 4)), np.ones(5), [1, 2]),
            r"got shape \(2, 3, 4\), 2 values and truth of shape \(5,\)",
        ),
        (
            lambda X, y: LossLandscape.from_estimator(castalia.Ridge().fit(X, y), X, y),
            "trained by gradients; got Ridge",
        ),
    ],
    ids=["no values", "no rows", "shapes", "no loop"],
)
def test_curves_of_nothing_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(RNG.normal(size=(10, 2)), RNG.normal(size=10))
