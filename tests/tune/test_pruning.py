"""When a trial is given up."""

import numpy as np
import pytest

from castalia.tune.pruning import STARTUP, falls_behind

RIVALS = [[0.9, 0.8, 0.9, 0.7], [0.8, 0.7, 0.9, 0.6], [0.7, 0.7, 0.8, 0.6], [0.8, 0.8, 0.8, 0.7]]


def test_a_trial_as_good_as_the_best_goes_on_and_one_far_behind_does_not():
    assert not falls_behind([0.9], RIVALS)
    assert not falls_behind([0.9, 0.8, 0.9], RIVALS)
    assert falls_behind([0.2], RIVALS)
    assert falls_behind([0.9, 0.1], RIVALS)


def test_nothing_is_given_up_before_there_are_enough_to_compare_with_or_at_the_end():
    assert not falls_behind([0.1], RIVALS[: STARTUP - 1])
    assert not falls_behind([0.1, 0.1, 0.1, 0.1], RIVALS)
    assert not falls_behind([0.1], [[0.9]] * 5)


def test_a_hard_fold_is_hard_for_all():
    """Folds are compared one by one: low scores on a fold that is low for the best do no harm."""
    rivals = [[0.2, 0.9, 0.9], [0.19, 0.85, 0.9], [0.2, 0.9, 0.8], [0.15, 0.9, 0.85]]
    assert not falls_behind([0.19], rivals)
    assert falls_behind([0.19, 0.3], rivals)


@pytest.mark.parametrize("done", [1, 2, 4])
def test_a_winner_is_seldom_given_up(done):
    """The rate is that of a normal variable beyond Z standard errors, or less."""
    rng = np.random.default_rng(0)
    lost = 0
    for _ in range(400):
        level = rng.normal(size=12)[:, None]
        table = level + 0.5 * rng.normal(size=(12, 5))
        winner = table.mean(axis=1).argmax()
        lost += falls_behind(table[winner, :done], np.delete(table, winner, axis=0))
    assert lost / 400 < 0.17
