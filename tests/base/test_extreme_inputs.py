"""Numbers that cannot be computed with are refused in a sentence, not turned into others."""

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix

from castalia import LinearRegression, MLPClassifier, MLPRegressor
from castalia.errors import InvalidData, InvalidParameter

X = np.random.default_rng(0).normal(size=(60, 3))
Y = X[:, 0]


def regressor(**settings):
    return MLPRegressor(**{"hidden": (4,), "epochs": 2, "random_state": 0, **settings})


@pytest.mark.parametrize("model", [regressor(), LinearRegression()])
@pytest.mark.parametrize(
    "y, said",
    [
        (Y + 1j, "y must hold real numbers; got complex128"),
        (np.arange(60).astype("datetime64[D]"), "must hold numbers; got dates"),
        (np.arange(60).astype("timedelta64[h]"), "must hold numbers; got dates"),
    ],
    ids=["complex", "dates", "durations"],
)
def test_targets_that_are_no_real_numbers_are_refused(model, y, said):
    with pytest.raises(InvalidData, match=said):
        model.fit(X, y)


def test_dates_may_be_classes():
    y = (np.arange(60) % 2).astype("datetime64[D]")
    model = MLPClassifier(hidden=(4,), epochs=1, random_state=0).fit(X, y)
    assert set(model.predict(X)) <= set(y)


@pytest.mark.parametrize("model", [regressor(), LinearRegression()])
def test_numbers_whose_squares_overflow_are_refused(model):
    with pytest.raises(InvalidData, match=r"X must hold numbers below 1e\+150"):
        model.fit(X * 1e200, Y)
    holed = np.where(np.arange(3) == 1, np.nan, X * 1e200)
    with pytest.raises(InvalidData, match=r"below 1e\+150"):
        regressor().fit(holed, Y)
    with pytest.raises(InvalidData, match=r"below 1e\+150"):
        regressor().fit(csr_matrix(X * 1e200), Y)
    assert np.isfinite(model.fit(X * 1e100, Y).predict(X * 1e100)).all()


def test_predictions_that_overflow_are_an_error():
    model = regressor().fit(X, Y)
    with torch.no_grad():
        for parameter in model.module_.parameters():
            parameter.fill_(torch.finfo(parameter.dtype).max / 2)
    with pytest.raises(InvalidData, match="predictions of these rows are not finite"):
        model.predict(X)


def test_a_seed_beyond_64_bits_is_refused():
    with pytest.raises(InvalidParameter, match=r"below 2\^63"):
        regressor(random_state=2**70).fit(X, Y)


def test_tensors_that_require_gradients_are_taken_as_numbers():
    rows, target = (torch.tensor(a, requires_grad=True) for a in (X, Y))
    found = regressor().fit(rows, target).predict(rows)
    np.testing.assert_array_equal(found, regressor().fit(X, Y).predict(X))
