import math

import numpy as np
import pytest
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    mean_absolute_error,
    mean_squared_error,
    r2_score,
    roc_auc_score,
    root_mean_squared_error,
)

from castalia.errors import InvalidData, InvalidParameter, ShapeMismatch
from castalia.evaluate import Interval, bootstrap, interval, paired_difference

RNG = np.random.default_rng(0)
Y = RNG.normal(size=300)
P = Y + 0.5 * RNG.normal(size=300)
LABELS = RNG.choice(["a", "b", "c"], size=300, p=[0.6, 0.3, 0.1])
GUESS = np.where(RNG.random(300) < 0.8, LABELS, RNG.choice(["a", "b", "c"], size=300))


def test_interval_is_students_t():
    found = interval([1.0, 2.0, 3.0])
    # s = 1, t(0.975, 2) = 4.302653
    assert found.mean == 2
    assert found.high - 2 == pytest.approx(4.302653 / math.sqrt(3), rel=1e-6)
    assert found.low == pytest.approx(4 - found.high)


def test_one_seed_has_unknown_bounds():
    found = interval([0.9])
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert not found.known
    assert not found.excludes(0)
    assert str(found) == "0.9"


def test_interval_needs_values_and_a_level_between_0_and_1():
    with pytest.raises(InvalidData, match="at least one score; got none"):
        interval([])
    with pytest.raises(InvalidParameter, match="`level` must lie between 0 and 1; got 95"):
        interval([1, 2], level=95)


@pytest.mark.parametrize(
    "name, function, y, p",
    [
        ("accuracy", accuracy_score, LABELS, GUESS),
        ("balanced_accuracy", balanced_accuracy_score, LABELS, GUESS),
        ("mse", mean_squared_error, Y, P),
        ("rmse", root_mean_squared_error, Y, P),
        ("mae", mean_absolute_error, Y, P),
        ("r2", r2_score, Y + 1e4, P + 1e4),
    ],
)
def test_sums_give_the_same_interval_as_scoring_each_resample(name, function, y, p):
    fast = bootstrap(name, y, p, rounds=40)
    slow = bootstrap(lambda a, b: function(a, b), y, p, rounds=40)
    assert (fast.mean, fast.low, fast.high) == pytest.approx((slow.mean, slow.low, slow.high))
    assert bootstrap(function, y, p, rounds=40) == fast
    assert fast.low < fast.mean < fast.high
    assert fast.n == 300


def test_blocks_do_not_change_the_resamples(monkeypatch):
    whole = bootstrap("mse", Y, P, rounds=50)
    monkeypatch.setattr("castalia.evaluate.intervals._BLOCK", 7 * len(Y))
    found = bootstrap("mse", Y, P, rounds=50)  # blocks are summed in another order on some CPUs
    assert (found.mean, found.low, found.high) == pytest.approx((whole.mean, whole.low, whole.high))


def test_bootstrap_covers_a_known_accuracy_about_as_often_as_it_says():
    rng, hits = np.random.default_rng(1), 0
    for i in range(100):
        right = rng.random(200) < 0.8
        found = bootstrap("accuracy", np.ones(200), right, rounds=200, random_state=i)
        hits += found.low <= 0.8 <= found.high
    assert 88 <= hits <= 99


def test_resamples_that_lose_a_class_are_ignored():
    y = np.array([0] * 9 + [1])
    found = bootstrap(roc_auc_score, y, np.arange(10), rounds=60)
    assert found.mean == 1
    assert found.known


def test_paired_difference_is_narrower_than_the_two_intervals():
    a, b = P, P + 0.05
    both = paired_difference("rmse", Y, a, b)
    alone = bootstrap("rmse", Y, a)
    assert both.mean == pytest.approx(root_mean_squared_error(Y, a) - root_mean_squared_error(Y, b))
    assert both.high - both.low < 0.3 * (alone.high - alone.low)


def test_a_model_does_not_differ_from_itself():
    assert paired_difference("accuracy", LABELS, GUESS, GUESS) == Interval(0, 0, 0, 300)


def test_same_seed_same_interval():
    assert bootstrap("mse", Y, P, random_state=3) == bootstrap("mse", Y, P, random_state=3)
    assert bootstrap("mse", Y, P, random_state=3) != bootstrap("mse", Y, P, random_state=4)


def test_errors_name_the_values():
    with pytest.raises(InvalidParameter, match=r"got 'acuracy'. Did you mean `accuracy`\?"):
        bootstrap("acuracy", LABELS, GUESS)
    with pytest.raises(ShapeMismatch, match=r"of `y_true` \(300\); got 299"):
        bootstrap("accuracy", LABELS, GUESS[:-1])
    with pytest.raises(InvalidParameter, match="`rounds` must be at least 1; got 0"):
        bootstrap("accuracy", LABELS, GUESS, rounds=0)
    with pytest.raises(InvalidData, match="at least one row"):
        bootstrap("accuracy", [], [])
