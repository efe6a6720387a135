"""Windows over series: what they hold, and that nothing of the future is in the past."""

import numpy as np
import pytest
import torch

from castalia.data import windows
from castalia.data.batches import Samples
from castalia.data.sequences import SeriesAdapter, SeriesWindows
from castalia.errors import DataWarning, InvalidData, InvalidParameter


def test_windows_are_those_of_a_loop():
    series = np.random.default_rng(0).normal(size=(40, 3))
    found = windows(series, 5, 4, stride=3, gap=2)
    for past, future, start in zip(*found, strict=True):
        assert np.array_equal(past, series[start : start + 5])
        assert np.array_equal(future, series[start + 7 : start + 11])
    assert found.start.tolist() == list(range(0, 40 - 11 + 1, 3))


@pytest.mark.parametrize(
    "series, how, error, words",
    [
        (np.zeros(5), (4, 2), InvalidData, "6 steps at least.*got 5 steps"),
        (np.zeros(5), (0, 1), InvalidParameter, "`length` must be"),
        (np.zeros((2, 2, 2)), (1, 1), InvalidData, r"got shape \(2, 2, 2\)"),
    ],
)
def test_windows_that_cannot_be_are_refused(series, how, error, words):
    with pytest.raises(error, match=words):
        windows(series, *how)


def adapter(**how):
    return SeriesAdapter(context=4, horizon=2, **how)


def test_rows_are_the_windows_of_every_series():
    series = [np.arange(10.0), 100 + np.arange(8.0)]
    made = adapter()
    X = made.check(series, "owner")
    made.fit(X)
    past, future = made.rows(X, np.float64).take(torch.arange(len(X)))
    back = past[..., 0].numpy() * made.deviation + made.mean
    assert np.allclose(back, X.past()[..., 0])
    assert len(X) == 5 + 3
    assert np.allclose(future[..., 0].numpy() * made.deviation + made.mean, X.future()[..., 0])
    assert np.allclose(back[5], [100, 101, 102, 103])


def test_validation_is_later_and_its_future_is_not_trained_on():
    series = [np.arange(60.0), np.arange(50.0)]
    made = adapter()
    X = made.check(series, "owner")
    samples = Samples(made.fit(X).rows(X, np.float32))
    kept, held = made.split(samples, 0.2, seed=0)
    for number in (0, 1):
        mine = X.number == number
        trained = X.start[kept.rows.numpy()][mine[kept.rows.numpy()]]
        tested = X.start[held.rows.numpy()][mine[held.rows.numpy()]]
        assert trained.max() + 4 + 2 <= tested.min() + 4


def test_scales_come_from_the_windows_given_not_from_what_follows():
    series = np.concatenate([np.zeros(20), np.full(20, 1e6)])
    made = adapter()
    whole = made.check(series, "owner")
    early = whole.take(np.flatnonzero(whole.start < 10))
    assert made.fit(early).mean.tolist() == [0.0]


def test_a_short_series_is_left_out_with_a_warning():
    with pytest.warns(DataWarning, match="fewer than 6 steps left out: `1`"):
        found = adapter().check([np.arange(9.0), np.arange(3.0)], "owner")
    assert set(found.number.tolist()) == {0}
    with pytest.raises(InvalidData, match="6 steps at least"):
        adapter().check([np.arange(3.0)], "owner")


@pytest.mark.parametrize(
    "series, how, words",
    [
        (np.array([[1.0, np.nan]] * 9), {"missing": "forward"}, "`c1` has none"),
        (np.array([1.0, np.inf] * 9), {}, "first in sequence 0, step 1"),
        (np.zeros((9, 2)), {"target": "temp"}, "`target` must name channels.*got 'temp'"),
        (np.array(["a"] * 9), {}, "numbers only"),
    ],
)
def test_series_that_cannot_be_forecast_are_refused(series, how, words):
    with pytest.raises((InvalidData, InvalidParameter), match=words):
        adapter(**how).check(series, "owner")


def test_windows_of_another_size_are_refused():
    X = adapter().check(np.arange(20.0), "owner")
    with pytest.raises(InvalidParameter, match="context 5 and horizon 2; got 4 and 2"):
        SeriesAdapter(context=5, horizon=2).check(X, "owner")
    assert isinstance(X.take([0, 1]), SeriesWindows)
