"""Recorded steps without a CUDA device: the recording is played by hand."""

import pytest
import torch
from torch import nn

from castalia import Training
from castalia.data.batches import Samples, TensorRows
from castalia.objectives import SquaredError
from castalia.train.capture import WARM_UP, CapturedStepper
from castalia.train.precision import Precision
from castalia.train.strategy import Single


class Player:
    """Stands for a CUDA graph: a replay writes the number of the step as its loss."""

    def __init__(self, stepper):
        self.stepper = stepper

    def replay(self):
        at = int(self.stepper.cursor)
        self.stepper.terms["loss"][at] = 10.0 * self.stepper.window + at
        self.stepper.cursor.add_(1)


def make(n):
    training = Training(optimizer="sgd")
    stepper = CapturedStepper(
        nn.Linear(1, 1),
        SquaredError(),
        training,
        batch_size=2,
        lr=0.1,
        device=torch.device("cpu"),
        precision=Precision("float32", torch.float32),
        strategy=Single(),
    )
    stepper.warm = WARM_UP
    return stepper, Samples(TensorRows(torch.zeros(n, 1)), torch.zeros(n, 1))


def test_steps_of_a_window_left_before_collecting_are_kept():
    stepper, samples = make(6)
    for stepper.window in range(2):
        stepper.begin(samples, torch.arange(6))
        stepper.terms = {"loss": torch.zeros(3)}  # as a new recording makes them
        stepper.recorded = {None: Player(stepper)}
        for i in range(3):
            stepper.step(i, i)
    values, rows = stepper.collect()
    assert values["loss"].tolist() == [0.0, 1.0, 2.0, 10.0, 11.0, 12.0]
    assert rows == [2] * 6


@pytest.mark.parametrize(("launched", "done", "recorded"), [(1.0, 1.2, True), (1.0, 4.0, False)])
def test_steps_that_keep_the_device_busy_are_not_recorded(monkeypatch, launched, done, recorded):
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    clock = iter([0.0, launched, done])
    monkeypatch.setattr("castalia.train.capture.time.perf_counter", lambda: next(clock))
    stepper, samples = make(8)
    stepper.warm = 0
    stepper.begin(samples, torch.arange(8))
    for i in range(WARM_UP):
        stepper.step(i, i)
    assert (stepper.failed is None) is recorded
