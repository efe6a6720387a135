"""Views of curves against brute force over all points."""

import numpy as np
import pytest

from castalia.studio import curve_envelope
from castalia.studio.curve_envelope import CurveViews, Envelope, coarsened
from castalia.train.runs import RunStore


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setattr(curve_envelope, "SHORT", 50)
    monkeypatch.setattr(curve_envelope, "FINE", 64)
    with RunStore(tmp_path) as store:
        yield store.open_run("long", "x", {})


def noted(run, steps, values):
    for step, value in zip(steps.tolist(), values.tolist(), strict=True):
        run.log(step, step // 100, {"loss": value})
    run.flush()


def check(found, steps, values, first, last):
    """Compare every bucket with the points from its first step to the next bucket's."""
    assert found.step[0] <= steps[steps >= first][0]
    inside = (steps >= found.step[0]) & (steps <= last)
    steps, values = steps[inside], values[inside]
    cuts = np.searchsorted(steps, found.step)
    for part, low, mean, high, n in zip(
        np.split(values, cuts[1:]), found.low, found.mean, found.high, found.count, strict=True
    ):
        known = part[~np.isnan(part)]
        if n > len(known) > 0:  # the last one goes on behind the view
            assert (n, low <= known.min(), high >= known.max()) == (found.count[-1], True, True)
            continue
        assert n == len(known)
        if n:
            np.testing.assert_allclose((low, high), (known.min(), known.max()), rtol=1e-13)
            np.testing.assert_allclose(mean, known.mean(), rtol=1e-9)
        else:
            assert np.isnan([low, mean, high]).all()


@pytest.mark.parametrize("stride", [1, 7])
def test_a_long_curve_has_the_range_and_mean_of_every_bucket(run, stride):
    rng = np.random.default_rng(stride)
    steps = 1_000 + stride * np.arange(3_000)
    values = rng.standard_normal(3_000)
    values[rng.random(3_000) < 0.1] = np.nan
    values[500:900] = np.nan
    noted(run, steps, values)
    views = CurveViews()
    for span in (None, (2_000, 2_900), (1_500, 1_560), (0, 10**6)):
        found, exact = views.view(run.store, 1, "loss", span, width=20)
        first, last = span or (0, 10**9)
        assert exact
        assert 0 < len(found) <= 60
        check(found, steps, values, first, last)


def test_a_short_view_has_the_points_themselves(run):
    steps, values = np.arange(3_000), np.arange(3_000.0)
    noted(run, steps, values)
    found, exact = CurveViews().view(run.store, 1, "loss", (100, 120), width=20)
    assert exact
    assert found.step.tolist() == list(range(100, 121))
    assert found.low.tolist() == found.high.tolist() == list(range(100, 121))


def test_a_curve_that_grows_or_is_cut_back_is_the_same_as_one_read_afresh(run):
    rng = np.random.default_rng(0)
    values, views = rng.standard_normal(5_000), CurveViews()
    for end in (400, 401, 1_500, 5_000):
        noted(run, np.arange(end), values[:end])
        found, _ = views.view(run.store, 1, "loss", width=10)
        check(found, np.arange(end), values[:end], 0, end)
        assert len(found) <= 30
    run.truncate(700)
    found, _ = views.view(run.store, 1, "loss", width=10)
    check(found, np.arange(701), values[:701], 0, 700)


def test_a_preview_is_within_the_curve_and_says_so(run):
    values = np.random.default_rng(0).standard_normal(5_000)
    noted(run, np.arange(5_000), values)
    views = CurveViews()
    quick, exact = views.view(run.store, 1, "loss", width=10, quick=True)
    assert not exact
    assert len(quick) <= 21
    assert (quick.count <= curve_envelope.GLANCE).all()
    assert quick.low.min() >= values.min()
    assert quick.high.max() <= values.max()
    views.view(run.store, 1, "loss", width=10)
    assert views.view(run.store, 1, "loss", width=10, quick=True)[1]


def test_merged_buckets_weigh_their_means_by_count():
    whole = Envelope.of_points([(i, 0, float(i)) for i in range(6)])
    parts = coarsened(whole, np.array([0, 1, 1, 1, 1, 1]))
    assert coarsened(parts, np.zeros(2)).mean.tolist() == [2.5]


def test_a_curve_that_is_not_there_is_empty(run):
    found, exact = CurveViews().view(run.store, 1, "none")
    assert exact
    assert len(found) == 0
