"""Splitting rows."""

import numpy as np
import pytest

from castalia.data import grouped, holdout, kfold, leave_one_out, temporal
from castalia.errors import InvalidData, InvalidParameter


@pytest.mark.parametrize("labels", [None, np.arange(103) % 3])
def test_the_parts_are_disjoint_complete_and_repeatable(labels):
    kept, held = holdout(103, 0.2, seed=5, labels=labels)
    assert len(held) == 20
    assert sorted([*kept, *held]) == list(range(103))
    assert (np.diff(kept) > 0).all()
    assert (np.diff(held) > 0).all()
    again = holdout(103, 0.2, seed=5, labels=labels)
    assert all(np.array_equal(a, b) for a, b in zip((kept, held), again, strict=True))
    assert not np.array_equal(held, holdout(103, 0.2, seed=6, labels=labels)[1])


def test_classes_keep_their_proportions():
    labels = np.repeat(["a", "b", "c"], [60, 30, 10])
    held = holdout(100, 0.2, seed=0, labels=labels)[1]
    assert np.unique(labels[held], return_counts=True)[1].tolist() == [12, 6, 2]


def test_a_class_of_one_row_gives_up_proportions():
    labels = np.array([0] * 50 + [1] * 49 + [2])
    assert len(holdout(100, 0.2, seed=0, labels=labels)[1]) == 20


def test_groups_stay_together():
    groups = np.repeat(np.arange(20), 5)
    kept, held = holdout(100, 0.2, seed=0, groups=groups)
    assert not set(groups[kept]) & set(groups[held])


def test_one_group_cannot_be_split():
    with pytest.raises(InvalidData, match="two groups or more; got one"):
        holdout(100, 0.2, seed=0, groups=np.zeros(100))


def test_the_latest_rows_are_held_out():
    times = np.arange(50)[::-1]
    assert holdout(50, 0.2, seed=0, order=times)[1].tolist() == list(range(10))


def test_too_few_rows_are_not_held_out():
    kept, held = holdout(99, 0.1, seed=0, smallest=10)
    assert (len(kept), len(held)) == (99, 0)


@pytest.mark.parametrize(
    "folds",
    [
        lambda seed: kfold(23, 5, seed=seed),
        lambda seed: kfold(23, 5, seed=seed, labels=np.arange(23) % 2),
        lambda seed: grouped(np.arange(23) // 3, 4, seed=seed),
    ],
)
def test_every_row_is_held_out_once_and_the_seed_decides_when(folds):
    found = folds(0)
    assert sorted(np.concatenate([held for _, held in found])) == list(range(23))
    for kept, held in found:
        assert sorted([*kept, *held]) == list(range(23))
    same, other = folds(0), folds(1)
    assert all(np.array_equal(a[1], b[1]) for a, b in zip(found, same, strict=True))
    assert not all(np.array_equal(a[1], b[1]) for a, b in zip(found, other, strict=True))


def test_folds_keep_the_proportions_of_classes():
    labels = np.repeat(["rare", "common"], [10, 40])
    for _, held in kfold(50, 5, labels=labels):
        assert np.unique(labels[held], return_counts=True)[1].tolist() == [8, 2]


def test_no_group_is_on_both_sides_of_a_fold():
    groups = np.arange(40) % 7
    for kept, held in grouped(groups, 3):
        assert not set(groups[kept]) & set(groups[held])


def test_each_row_is_left_out_alone():
    assert [held.tolist() for _, held in leave_one_out(4)] == [[0], [1], [2], [3]]
    assert [len(kept) for kept, _ in leave_one_out(4)] == [3] * 4


def test_folds_in_time_are_trained_on_the_past_with_a_gap():
    times = np.random.default_rng(0).permutation(30)
    for kept, held in temporal(times, 4, gap=2):
        assert times[kept].max() + 2 < times[held].min()
    assert times[temporal(times, 4)[-1][1]].max() == 29


@pytest.mark.parametrize(
    "split",
    [
        lambda: kfold(3, 4),
        lambda: kfold(3, 1),
        lambda: leave_one_out(1),
        lambda: grouped([1, 1, 2], 3),
        lambda: temporal([1, 2, 3], 3),
    ],
)
def test_more_folds_than_rows_or_groups_are_refused(split):
    with pytest.raises(InvalidParameter, match="must be from 2 to the number of"):
        split()
