"""SIGTERM: a training saves itself, ends with a code of its own, and goes on."""

import signal

import numpy as np
import pytest
import torch

from castalia import Callback, MLPRegressor, Training
from castalia.utils.preemption import REQUEUE, Preempted, SigtermNotice, preempt

X = np.linspace(-1, 1, 64)[:, None]


@pytest.fixture(autouse=True)
def handler():
    before = signal.signal(signal.SIGTERM, preempt)
    yield
    signal.signal(signal.SIGTERM, before)


class Term(Callback):
    """Sends SIGTERM in the middle of an epoch."""

    def __init__(self, at):
        self.at = at

    def on_batch_start(self, state):
        if state.total == self.at:
            signal.raise_signal(signal.SIGTERM)


def fit(run, *callbacks):
    training = Training(run=run, callbacks=callbacks, precision="float64")
    model = MLPRegressor(hidden=(4,), epochs=3, batch_size=8, random_state=0, training=training)
    return model.fit(X, X[:, 0] ** 2)


def test_a_training_writes_the_step_it_is_at_and_goes_on_from_there(tmp_path):
    with pytest.raises(Preempted) as caught:
        fit(tmp_path / "run", Term(10))
    assert caught.value.code == REQUEUE
    assert isinstance(caught.value, SystemExit)
    kept = sorted(path.name for path in (tmp_path / "run" / "checkpoints").glob("step-*"))
    assert kept[-1] == "step-00000011.safetensors"
    resumed, whole = fit(tmp_path / "run"), fit(None)
    for one, other in zip(resumed.module_.parameters(), whole.module_.parameters(), strict=True):
        assert torch.equal(one, other)


def test_a_signal_that_comes_too_late_is_not_lost():
    notice = SigtermNotice()
    with pytest.raises(Preempted), notice:
        signal.raise_signal(signal.SIGTERM)
    assert notice.asked
    assert signal.getsignal(signal.SIGTERM) is preempt


def test_handlers_of_others_stay():
    seen = []
    signal.signal(signal.SIGTERM, lambda *event: seen.append(event))
    with SigtermNotice() as notice:
        signal.raise_signal(signal.SIGTERM)
    assert len(seen) == 1
    assert not notice.asked
