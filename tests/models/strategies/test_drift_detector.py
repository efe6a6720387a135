"""Alarms after a planted change, and rarely before."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest
from sklearn.base import clone

from castalia.errors import InvalidData
from castalia.models.strategies import AdaptiveWindow, DriftDetector
from castalia.models.strategies.drift_detector import holm, mmd_test

RANDOM = np.random.default_rng(0)
OLD = pd.DataFrame(RANDOM.normal(size=(200, 3)), columns=["age", "height", "weight"])


def fresh(n=200):
    return pd.DataFrame(RANDOM.normal(size=(n, 3)), columns=OLD.columns)


@pytest.mark.parametrize("method", ["columns", "mmd", "classifier"])
def test_a_shifted_column_is_noticed_and_named(method):
    detector = DriftDetector(method=method, random_state=0).fit(OLD)
    new = fresh()
    assert not detector.test(new).drifted
    new["height"] += 1.0
    report = detector.test(new)
    assert report.drifted
    assert str(report).endswith("in `height`.")
    assert clone(detector).get_params() == detector.get_params()


@pytest.mark.parametrize("method", ["mmd", "classifier"])
def test_columns_that_only_go_together_otherwise_are_noticed_by_joint_tests(method):
    x = RANDOM.normal(size=400)
    alike = np.stack([x, x + 0.3 * RANDOM.normal(size=400)], axis=1) / [1, 1.09**0.5]
    apart = alike * [1, -1]
    assert DriftDetector(method=method, random_state=0).fit(alike).test(apart).drifted
    assert not DriftDetector(random_state=0).fit(alike).test(apart).drifted


def test_without_drift_alarms_are_as_rare_as_the_level():
    detector = DriftDetector(level=0.1).fit(RANDOM.normal(size=(2000, 3)))
    alarms = [detector.test(RANDOM.normal(size=(60, 3))).drifted for _ in range(200)]
    assert np.mean(alarms) < 0.18
    p = [mmd_test(*RANDOM.normal(size=(2, 20, 2)), RANDOM, 99) for _ in range(60)]
    assert kstest(p, "uniform").pvalue > 0.001


def test_holm_keeps_the_order_and_never_exceeds_one():
    p = RANDOM.random(20)
    found = holm(p)
    assert (found >= p).all()
    assert found.max() <= 1
    assert (np.diff(found[np.argsort(p)]) >= 0).all()


def test_a_stream_is_cut_soon_after_its_mean_changes_and_rarely_before():
    window = AdaptiveWindow()
    before = [window.update(float(v)) for v in RANDOM.random(400) < 0.2]
    assert sum(before) == 0
    after = [window.update(float(v)) for v in RANDOM.random(200) < 0.7]
    assert 0 < np.argmax(after) < 60
    assert window.mean == pytest.approx(0.7, abs=0.1)


def test_too_few_rows_are_refused():
    with pytest.raises(InvalidData, match="there must be 10 rows or more on either side; got 4"):
        DriftDetector().fit(OLD).test(OLD[:4])
