"""Recorded steps without a CUDA device: the recording is played by hand."""

import pytest
import torch
from torch import nn

from castalia import Training
from castalia.data.batches import Samples, TensorRows
from castalia.objectives import SquaredError
from castalia.train.precision import Precision
from castalia.train.step_parts import StepParts
from castalia.train.stepper import Stepper
from castalia.train.steppers.captured_step import WARM_UP, CapturedStep
from castalia.train.strategy import Single
from castalia.train.window import Window

CPU = torch.device("cpu")


class Player:
    """Stands for a CUDA graph: a replay writes what was recorded as the loss of the step."""

    def __init__(self, step, value):
        self.step, self.value = step, value

    def replay(self):
        at = int(self.step.cursor)
        self.step.terms[at] = self.value + at
        self.step.cursor.add_(1)


class Recording(CapturedStep):
    """Records by hand."""

    value = 0.0

    def _capture(self, draw):
        if not self.recorded:
            self.names, self.terms = ["loss"], torch.zeros(len(self.table) + 1, 1)
        offset = 100.0 * draw.width[0] if draw.width else self.value
        self.recorded[len(draw.rows), draw.width] = Player(self, offset)
        return True


def make(warm=WARM_UP, kind=Recording):
    precision = Precision("float32", torch.float32)
    training = Training(optimizer="sgd")
    net, loss = nn.Linear(1, 1), SquaredError()
    parts = StepParts(net, loss, training, 0.1, CPU, precision, Single(), capture=True)
    stepper = Stepper(parts)
    stepper.way = kind(parts)
    stepper.way.warm = warm
    return stepper


def enter(stepper, samples, order):
    """Begin a window of batches of two, and keep the way that plays recordings."""
    way = stepper.way
    stepper.begin(Window(samples, order, range(0, len(order) + 2, 2), CPU, Single()))
    stepper.way = way


def rows(n):
    return Samples(TensorRows(torch.zeros(n, 1)), torch.zeros(n, 1))


def test_steps_of_a_window_left_before_collecting_are_kept():
    stepper = make()
    for window in range(2):
        stepper.way.value = 10.0 * window
        enter(stepper, rows(6), torch.arange(6))
        for i in range(3):
            stepper.step(i, i)
    values, counts = stepper.collect()
    assert values["loss"].tolist() == [0.0, 1.0, 2.0, 10.0, 11.0, 12.0]
    assert counts == [2] * 6


def test_a_second_epoch_of_the_same_samples_replays_the_recording_of_the_first():
    stepper, samples = make(), rows(6)
    for epoch in range(2):
        stepper.way.value = 10.0 * epoch  # a new recording would write this
        enter(stepper, samples, torch.randperm(6))
        for i in range(3):
            stepper.step(i, i)
    assert stepper.collect()[0]["loss"].tolist() == [0.0, 1.0, 2.0] * 2


def test_a_short_last_batch_is_taken_eagerly_then_recorded_for_the_epochs_that_follow():
    stepper, samples, found = make(), rows(5), []
    for epoch in range(3):
        stepper.way.value = 10.0 * epoch  # of what is recorded in this epoch
        enter(stepper, samples, torch.randperm(5))
        for i in range(3):
            stepper.step(i, i)
        values, counts = stepper.collect()
        found.append(values["loss"].tolist())
        assert counts == [2, 2, 1]
    assert [losses[:2] for losses in found] == [[0.0, 1.0]] * 3
    assert found[0][2] < 2  # its own loss
    assert [losses[2] for losses in found[1:]] == [12.0, 12.0]
    assert set(stepper.way.recorded) == {(2, None), (1, None)}


def test_the_rows_of_a_short_last_batch_are_those_of_the_epoch():
    stepper, samples = make(), rows(5)
    for order in (torch.tensor([4, 3, 2, 1, 0]), torch.tensor([0, 1, 3, 4, 2])):
        enter(stepper, samples, order)
        stepper.step(0, 0)
        assert stepper.way.short.tolist() == order[4:].tolist()
        assert stepper.way.table.flatten().tolist() == order[:4].tolist()


@pytest.mark.parametrize(("launched", "done", "recorded"), [(1.0, 1.2, True), (1.0, 4.0, False)])
def test_steps_that_keep_the_device_busy_are_not_recorded(monkeypatch, launched, done, recorded):
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    clock = iter([0.0, launched, done])
    place = "castalia.train.steppers.captured_step.time.perf_counter"
    monkeypatch.setattr(place, lambda: next(clock))
    stepper = make(warm=0)
    enter(stepper, rows(8), torch.arange(8))
    for i in range(WARM_UP):
        stepper.step(i, i)
    assert (stepper.way.failed is None) is recorded


def test_each_width_is_recorded_once_and_replayed_for_its_batches():
    stepper = make()
    lengths = torch.tensor([3, 3, 7, 7, 3, 3, 7, 7])
    samples = Samples(TensorRows(torch.zeros(8, 9), lengths), torch.zeros(8, 1))
    enter(stepper, samples, torch.arange(8))
    for i in range(4):
        stepper.step(i, i)
    assert set(stepper.way.recorded) == {(2, (3,)), (2, (7,))}
    assert stepper.collect()[0]["loss"].tolist() == [300.0, 701.0, 302.0, 703.0]


def test_the_phases_of_a_step_share_one_batch_and_parts_have_their_own():
    window = Window(rows(4), torch.arange(4), range(0, 6, 2), CPU, Single())
    draw = window.draw(1)
    assert draw.batch() is draw.batch()
    assert window.draw(1).batch() is not draw.batch()
    assert len(draw.part(draw.rows[:1]).batch().x) == 1
