"""Splitting rows."""

import numpy as np
import pytest

from castalia.data.row_splits import holdout
from castalia.errors import InvalidData


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
