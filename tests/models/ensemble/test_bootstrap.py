"""Bootstrap samples."""

import numpy as np
import pandas as pd
import pytest

from castalia.models.ensemble.bootstrap import bootstrap_counts
from castalia.models.ensemble.ensemble import merge_repeats


def draw(X, y, weight=None, samples=1, classes=0):
    random = np.random.default_rng(3)
    return bootstrap_counts(X, y, weight, samples=samples, random=random, classes=classes)


def table(n=12):
    random = np.random.default_rng(0)
    return random.normal(size=(n, 2)), random.integers(0, 2, n)


def test_a_sample_holds_as_many_draws_as_rows_and_63_percent_of_them():
    X, y = table(2000)
    counts = draw(X, y, samples=30)
    assert (counts.sum(axis=1) == 2000).all()
    # 1 - 1/e, with a standard error of about 0.31 / sqrt(2000 * 30)
    assert (counts > 0).mean() == pytest.approx(1 - np.exp(-1), abs=0.005)
    assert np.bincount(counts.ravel())[:4] / counts.size == pytest.approx(
        [0.368, 0.368, 0.184, 0.061], abs=0.006
    )


def test_a_weight_of_two_is_drawn_like_a_row_written_twice_in_any_order():
    X, y = table()
    weight = np.arange(12) % 4 + 1.0
    order = np.random.default_rng(1).permutation(12)
    weighted = draw(X[order], y[order], weight[order], samples=5)
    twice = np.repeat(np.arange(12), weight.astype(int))
    repeated = draw(X[twice], y[twice], samples=5)
    summed = np.stack([repeated[:, twice == i].sum(axis=1) for i in order], axis=1)
    assert np.array_equal(weighted, summed)


def test_frames_are_drawn_like_arrays():
    X, y = table()
    assert np.array_equal(draw(pd.DataFrame(X, columns=["a", "b"]), y), draw(X, y))


def test_small_weights_do_not_shrink_the_sample():
    X, y = table()
    assert draw(X, y, np.full(12, 1e-3)).sum() == 12


def test_a_sample_with_one_class_is_drawn_again():
    X, y = table(20)
    y = (np.arange(20) == 7).astype(int)
    assert all(len(np.unique(y[sample > 0])) == 2 for sample in draw(X, y, samples=40, classes=2))
    assert any(len(np.unique(y[sample > 0])) == 1 for sample in draw(X, y, samples=40))


def test_repeats_are_merged_and_holes_count_as_equal():
    X = np.array([[2.0, np.nan], [1.0, 0.0], [2.0, np.nan], [2.0, np.nan]])
    X, y, weight = merge_repeats(X, np.array([1, 0, 1, 0]), np.array([1.0, 5.0, 2.0, 4.0]))
    assert sorted(zip(X[:, 0], y, weight, strict=True)) == [(1, 0, 5), (2, 0, 4), (2, 1, 3)]
