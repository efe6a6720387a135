"""Which epoch is kept, and when waiting for a better one ends."""

import torch
from torch import nn

from castalia.train.best_weights import PROGRESS, BestWeights
from castalia.train.state import TrainState


def watched(losses, patience=3):
    """Watch an epoch for each row of losses until one ends the training."""
    state, best = TrainState(nn.Identity()), BestWeights(patience)
    for state.epoch, parts in enumerate(losses):
        now = torch.full((len(parts),), float(state.epoch))
        best.watch(parts, state, lambda now=now: {"w": now})
        if state.stopped:
            break
    return state, best


def test_one_network_is_waited_for_however_little_it_gains():
    losses = [1.0, 0.9, *(0.9 - 1e-9 * i for i in range(1, 20))]
    state, best = watched([[loss] for loss in losses])
    assert state.stopped is None
    assert best.weights["w"].tolist() == [20.0]
    state, _ = watched([[loss] for loss in (1.0, 0.5, 0.6, 0.6, 0.6, 0.6)])
    assert state.epoch == 4
    assert state.best == {"epoch": 1, "stage": 0, "val_loss": 0.5}


def test_each_part_keeps_its_own_best_epoch():
    state, best = watched([[3.0, 1.0], [2.0, 2.0], [2.5, 0.5]])
    assert best.weights["w"].tolist() == [1.0, 2.0]
    assert state.best["parts"] == [2.0, 0.5]
    assert state.best["val_loss"] == 1.25


def test_parts_that_gain_next_to_nothing_in_turn_are_not_waited_for():
    losses = [[1.0, 1.0], [0.8, 0.8]]
    for i in range(1, 20):  # one of them is better in every epoch
        losses.append([0.8 - 1e-6 * i, 0.8] if i % 2 else [0.9, 0.8 - 1e-6 * i])
    state, best = watched(losses)
    assert state.stopped == best.stale
    assert state.epoch == 4  # three epochs after the last progress
    assert best.weights["w"].tolist() == [4.0, 3.0]  # what was gained is kept


def test_progress_may_take_the_whole_patience():
    step = 0.6 * PROGRESS  # two of them are progress, one is not
    losses = [[1 - step * i, 1 - step * i] for i in range(20)]
    assert watched(losses, patience=3)[0].stopped is None
    assert watched(losses, patience=1)[0].epoch == 1


def test_a_first_loss_that_is_not_a_number_is_no_mark():
    losses = [[float("nan"), 1.0], [1.0, 1.0], [0.5, 0.5], [0.6, 0.6]]
    assert watched(losses, patience=2)[0].stopped is None


def test_a_checkpoint_without_a_mark_goes_on_from_its_best_epoch():
    state, best = TrainState(nn.Identity()), BestWeights(3)
    state.best = {"epoch": 0, "stage": 0, "val_loss": 1.0, "parts": [1.0, 1.0]}
    for state.epoch in (1, 2, 3):
        parts = [1.0 - 1e-6 * state.epoch, 1.0]
        best.watch(parts, state, lambda: {"w": torch.zeros(2)})
        assert bool(state.stopped) == (state.epoch == 3)
