"""Checkpoints by the clock: one for a training of seconds, many inside an epoch of hours."""

import math

import numpy as np
import pytest
import torch

from castalia import Callback, MLPClassifier, Training
from castalia.train import checkpoint_pace, recorder
from castalia.train.checkpoint_pace import CheckpointPace

X = np.random.default_rng(0).normal(size=(400, 3))
Y = (X[:, 0] > 0).astype(int)


class Interrupt(Callback):
    """Counts steps, and presses Ctrl-C after one of them."""

    def __init__(self, total=math.inf):
        self.total, self.steps = total, []

    def on_batch_end(self, state):
        self.steps.append(state.total)
        if state.total == self.total:
            raise KeyboardInterrupt


def model(run, callback):
    training = Training(run=run, callbacks=[callback], watch=False, validation=0)
    return MLPClassifier(
        hidden=(4,), epochs=2, batch_size=10, dropout=0.1, random_state=0, training=training
    )


@pytest.fixture
def written(monkeypatch):
    """Return the steps whose checkpoints are written."""
    steps, write = [], recorder.write_checkpoint

    def noted(folder, step, *args):
        steps.append(step)
        return write(folder, step, *args)

    monkeypatch.setattr(recorder, "write_checkpoint", noted)
    return steps


def test_a_training_of_less_than_ten_seconds_writes_one_checkpoint_at_its_end(tmp_path, written):
    fitted = model(tmp_path / "run", Interrupt()).fit(X, Y)
    assert written == [80]
    again = Interrupt()
    model(tmp_path / "run", again).fit(X, Y)
    assert again.steps == []  # it is finished, and found to be
    assert len(fitted.history_) == 2


def test_a_long_epoch_is_gone_on_with_from_the_last_ten_seconds(tmp_path, written, monkeypatch):
    whole = model(None, Interrupt()).fit(X, Y)
    monkeypatch.setattr(checkpoint_pace, "SECONDS", 0.0)
    monkeypatch.setattr(checkpoint_pace, "SHARE", math.inf)
    monkeypatch.setattr(recorder, "CLOCKED", 7)
    with pytest.raises(KeyboardInterrupt):
        model(tmp_path / "run", Interrupt(33)).fit(X, Y)
    assert written == [7, 14, 21, 28]  # all inside the first epoch
    rest = Interrupt()
    resumed = model(tmp_path / "run", rest).fit(X, Y)
    assert rest.steps[0] == 29
    assert [line["loss"] for line in resumed.history_] == [line["loss"] for line in whole.history_]
    for one, other in zip(whole.module_.parameters(), resumed.module_.parameters(), strict=True):
        assert torch.equal(one, other)


def test_checkpoints_wait_for_ten_seconds_and_slow_ones_for_fifty_times_their_own():
    now = [0.0]
    pace = CheckpointPace(lambda: now[0])
    due = []
    for now[0] in np.arange(0.0, 200.0, 0.5):
        if pace.is_due:
            due.append(now[0])
            with pace.writing():
                now[0] += 0.1 if now[0] < 40 else 1.0  # the disk gets slow
    assert due == [10.0, 20.5, 31.0, 41.5, 92.5, 143.5, 194.5]


def test_the_first_process_decides_for_all(tmp_path):
    class Second:
        rank = 1

        def agree(self, number):
            return 1  # the first process says it is time

    record = recorder.Recorder(tmp_path / "run")
    record.strategy = Second()
    assert not record.pace.is_due
    assert record.is_due()
    assert not record.is_due(None, 49)  # nobody asks in between
    assert [step for step in range(1, 13) if record.is_due(4, step)] == [4, 8, 12]
    record.finish()
