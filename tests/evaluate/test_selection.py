import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import LeaveOneOut, cross_val_predict

from castalia.errors import InvalidData, InvalidParameter
from castalia.evaluate import (
    aic,
    bic,
    gaussian_log_likelihood,
    loo,
    runs_test,
    structural_risk,
)

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("alpha", [0.0, 0.7, 100.0])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("targets", [1, 2])
def test_the_leave_one_out_identity_equals_fitting_n_times(alpha, intercept, targets):
    X = RNG.normal(size=(25, 4)) + 3
    y = RNG.normal(size=(25, targets)).squeeze()
    model = Ridge(alpha=alpha, fit_intercept=intercept)
    model = model if alpha else LinearRegression(fit_intercept=intercept)
    brute = y - cross_val_predict(model, X, y, cv=LeaveOneOut())
    found = loo(X, y, alpha=alpha, fit_intercept=intercept)
    np.testing.assert_allclose(found, brute, atol=1e-8)


def test_a_row_that_fits_itself_has_no_leave_one_out_residual():
    with pytest.raises(InvalidData, match="leverage is 1. Give more rows than features"):
        loo(np.eye(3), np.ones(3), fit_intercept=False)
    with pytest.raises(InvalidParameter, match="`alpha` must be finite and at least 0"):
        loo(np.eye(3), np.ones(3), alpha=-1)


def orders(rows, seed):
    """Return the orders that AIC and BIC choose for a cubic in noise."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, rows)
    y = 1 - 2 * x + 3 * x**3 + 0.5 * rng.normal(size=rows)
    scores = []
    for degree in range(9):
        residual = y - np.polynomial.Polynomial.fit(x, y, degree)(x)
        L, k = gaussian_log_likelihood(residual), degree + 2  # weights and the variance
        scores.append((aic(L, k), bic(L, k, rows)))
    return np.array(scores).argmin(axis=0)


def test_bic_finds_the_true_order_of_a_polynomial_and_aic_overshoots():
    found = np.array([orders(2000, seed) for seed in range(40)])
    assert (found[:, 1] == 3).mean() >= 0.95
    assert (found[:, 0] >= 3).all()
    assert (found[:, 0] > 3).mean() > (found[:, 1] > 3).mean()


def test_the_criteria_equal_their_formulas():
    assert aic(-12.5, 4) == 33.0
    assert bic(-12.5, 4, 100) == pytest.approx(4 * np.log(100) + 25)
    values = RNG.normal(size=50)
    spread = values.std()
    from scipy.stats import norm

    expected = norm.logpdf(values - values.mean(), scale=spread).sum()
    assert gaussian_log_likelihood(values - values.mean()) == pytest.approx(expected)
    with pytest.raises(InvalidData, match="an exact fit has no finite likelihood"):
        gaussian_log_likelihood([0.0, 0.0])


def test_structural_risk_minimisation_picks_the_true_degree():
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, 4000)
    label = rng.uniform(size=4000) < 1 / (1 + np.exp(-40 * (x**3 - 0.4 * x)))
    bounds = []
    for degree in range(1, 9):
        powers = np.vander(x, degree + 1)[:, :-1]
        error = 1 - LogisticRegression(C=1e4).fit(powers, label).score(powers, label)
        bounds.append(structural_risk(error, degree + 1, 4000))
    assert int(np.argmin(bounds)) + 1 == 3
    assert structural_risk(0.0, 5000, 4000) == np.inf


def test_structural_risk_is_vapnik_s_bound():
    # h = 5, n = 1000, eta = 0.05: sqrt((5 (ln 400 + 1) + ln 80) / 1000)
    bound = np.sqrt((5 * (np.log(400) + 1) + np.log(80)) / 1000)
    assert structural_risk(0.1, 5, 1000) == pytest.approx(0.1 + bound)
    assert bound == pytest.approx(0.198341, abs=1e-6)
    surer = structural_risk(0.1, 5, 1000, confidence=0.99)
    assert surer - 0.1 == pytest.approx(np.sqrt(bound**2 + np.log(5) / 1000))
    with pytest.raises(InvalidParameter, match="between 0 and 1"):
        structural_risk(0.1, 3, 100, confidence=2)


def test_the_runs_test_tells_shuffled_from_sequential_rows():
    series = np.sin(np.arange(300) / 20) + 0.3 * RNG.normal(size=300)
    assert runs_test(series) < 1e-6
    p = [runs_test(RNG.permutation(series)) for _ in range(200)]
    assert 0.01 <= np.mean(np.array(p) < 0.05) <= 0.1
    with pytest.raises(InvalidData, match="two values or more"):
        runs_test([1.0, 1.0, 2.0])


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: loo(np.ones((4, 1)), np.ones(3)), r"got shapes \(4, 1\) and \(3,\)"),
        (lambda: loo([[np.nan], [1.0]], [1.0, 2.0]), "`X` must hold .* got 1 of 2"),
        (lambda: runs_test([1.0, np.nan]), "`values` must hold .* got 1 of 2"),
        (lambda: gaussian_log_likelihood([]), "`residuals` must hold a number or more"),
        (lambda: bic(-1.0, 2, 0), "`rows` must be above 0"),
        (lambda: structural_risk(2.0, 3, 100), "`error` must be from 0 to 1"),
    ],
    ids=["lengths", "nan", "runs", "empty", "rows", "error"],
)
def test_what_cannot_be_judged_is_said(call, message):
    with pytest.raises(ValueError, match=message):
        call()
