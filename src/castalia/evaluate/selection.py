"""Estimates of the generalisation error without held-out rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import norm

from castalia.errors import InvalidData, InvalidParameter, ShapeMismatch
from castalia.models.linear import Ridge

__all__ = ["aic", "bic", "gaussian_log_likelihood", "loo", "runs_test", "structural_risk"]


def aic(log_likelihood: float, parameters: int) -> float:
    """Akaike's criterion, 2 k - 2 ln L; smaller is better.

    Examples
    --------
    >>> aic(-10.0, 3)
    26.0
    """
    return 2.0 * parameters - 2.0 * log_likelihood


def bic(log_likelihood: float, parameters: int, rows: int) -> float:
    """Schwarz's criterion, k ln n - 2 ln L; smaller is better.

    Finds the true order of a model as the rows grow, where ``aic`` keeps taking too many terms.
    """
    if not rows > 0:
        raise InvalidParameter(f"bic: `rows` must be above 0; got {rows!r}.")
    return float(parameters * np.log(rows) - 2.0 * log_likelihood)


def gaussian_log_likelihood(residuals: Any) -> float:
    """Log-likelihood of residuals under a normal law of fitted variance, (N,) or (N, T).

    Examples
    --------
    >>> round(gaussian_log_likelihood([1.0, -1.0]), 4)
    -2.8379
    """
    residuals = _finite(residuals, "gaussian_log_likelihood", "residuals")
    residuals = residuals.reshape(len(residuals), -1)
    variance = np.square(residuals).mean(axis=0)
    if not (variance > 0).all():
        raise InvalidData(
            "gaussian_log_likelihood: the residuals must not all be zero; an exact fit has no "
            "finite likelihood."
        )
    return float(-0.5 * len(residuals) * (np.log(2 * np.pi * variance) + 1).sum())


def loo(
    X: Any,
    y: Any,
    *,
    alpha: float = 0.0,
    fit_intercept: bool = True,
) -> np.ndarray:
    """Leave-one-out residuals of ridge regression, without fitting N times.

    With the hat matrix H = X (X^T X + alpha I)^-1 X^T the residual of row i, had it not been
    fitted, is (y_i - yhat_i) / (1 - H_ii).

    Parameters
    ----------
    X, y
        Rows (N, D) and targets (N,) or (N, T).
    alpha
        Penalty on the sum of squared weights, against the sum of squared errors.
    fit_intercept
        Whether there is a constant term, which is not penalised.

    Returns
    -------
    numpy.ndarray
        One residual per target value; its mean square estimates the error on new rows.

    Examples
    --------
    >>> loo([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0]).round(6) + 0.0
    array([0., 0., 0.])
    """
    X, y = _finite(X, "loo", "X"), _finite(y, "loo", "y")
    if X.ndim != 2 or len(X) != len(y):
        raise ShapeMismatch(
            f"loo: X must be (N, D) and y must have as many rows; got shapes {X.shape} and "
            f"{y.shape}."
        )
    if not 0 <= alpha < np.inf:
        raise InvalidParameter(f"loo: `alpha` must be finite and at least 0; got {alpha!r}.")
    found = Ridge(alpha=alpha, fit_intercept=fit_intercept, device="cpu").loo_residuals(X, y)
    alone = np.isnan(found).reshape(len(found), -1).any(axis=1)
    if alone.any():
        raise InvalidData(
            f"loo: row {int(alone.argmax())} must not be fitted exactly by itself; its leverage is "
            "1. Give more rows than features, or a penalty."
        )
    return found


def structural_risk(error: float, capacity: float, rows: int, confidence: float = 0.95) -> float:
    """Vapnik's bound on the risk: the empirical error plus what the capacity may cost.

    R <= R_emp + sqrt((h (ln(2 n / h) + 1) + ln(4 / eta)) / n) with probability 1 - eta. Among
    nested classes, take the one with the smallest bound.

    Parameters
    ----------
    error
        Empirical risk, for losses between 0 and 1.
    capacity
        Vapnik–Chervonenkis dimension h of the class.
    rows
        Training rows n.
    confidence
        1 - eta.

    Examples
    --------
    >>> structural_risk(0.1, 5, 1000) < structural_risk(0.1, 50, 1000)
    True
    """
    if not 0 <= error <= 1:
        raise InvalidParameter(f"structural_risk: `error` must be from 0 to 1; got {error!r}.")
    if not (0 < confidence < 1 and capacity > 0 and rows > 0):
        raise InvalidParameter(
            "structural_risk: `capacity` and `rows` must be above 0 and `confidence` between 0 and "
            f"1; got {capacity!r}, {rows!r} and {confidence!r}."
        )
    if capacity >= rows:
        return float("inf")  # the bound says nothing
    growth = capacity * (np.log(2 * rows / capacity) + 1)
    return float(error + np.sqrt((growth + np.log(4 / (1 - confidence))) / rows))


def runs_test(values: Any) -> float:
    """P-value that a sequence of numbers is in random order (Wald and Wolfowitz).

    Counts runs above and below the median: too few mean a trend or slow waves, too many an
    alternation. Small values speak against independent draws.

    Examples
    --------
    >>> runs_test(range(40)) < 1e-6
    True
    """
    values = _finite(values, "runs_test", "values")
    above = values[values != np.median(values)] > np.median(values)
    first, second = int(above.sum()), int((~above).sum())
    if min(first, second) < 2:
        raise InvalidData(
            "runs_test: needs two values or more above the median and two below; got "
            f"{first} and {second}."
        )
    runs = 1 + int((above[1:] != above[:-1]).sum())
    n = first + second
    mean = 1 + 2 * first * second / n
    variance = (mean - 1) * (mean - 2) / (n - 1)
    return float(2 * norm.sf(abs(runs - mean) / np.sqrt(variance)))


def _finite(values: Any, owner: str, name: str) -> np.ndarray:
    """Return values as floats, or say that some are missing or no numbers."""
    try:
        found = np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise InvalidData(
            f"{owner}: `{name}` must be a dense array of numbers: {error}."
        ) from error
    if not found.ndim or not found.size or not np.isfinite(found).all():
        raise InvalidData(
            f"{owner}: `{name}` must hold a number or more, all of them finite; got "
            f"{int((~np.isfinite(found)).sum())} of {found.size} that are not."
        )
    return found
