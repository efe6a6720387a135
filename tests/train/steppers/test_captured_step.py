"""Recorded CUDA steps; run where there is a CUDA device."""

import pytest
import torch

from castalia import Callback, MLPClassifier, Training
from castalia.objectives import L2, CrossEntropy
from castalia.optim import plateau
from castalia.testing import train_tensors
from castalia.testing.toys import blobs

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

X, Y = blobs(n=530)


def fit(**settings):
    model = MLPClassifier(epochs=4, batch_size=50, dropout=0.2, random_state=0)
    model.training = Training(device="cuda", **settings)
    return model.fit(X, Y)


def lines(model):
    return [{k: v for k, v in line.items() if k != "seconds"} for line in model.history_]


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "sgd", "momentum", "adagrad"])
def test_replayed_steps_equal_eager_ones(optimizer):
    settings = {"optimizer": optimizer, "schedule": "cosine", "clip": 1.0}
    recorded, eager = fit(**settings), fit(**settings, compile=False)
    assert recorded.settings_["graph"]
    assert not eager.settings_["graph"]
    assert lines(recorded) == pytest.approx(lines(eager), abs=1e-5)
    for p, q in zip(recorded.module_.parameters(), eager.module_.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-5, atol=1e-6)


def test_replayed_steps_follow_the_losses_and_clip_values_as_eager_ones():
    schedule = plateau(factor=0.5, patience=1, threshold=0.9)
    settings = {"schedule": schedule, "clip": ("value", 1e-3), "optimizer": "momentum"}
    recorded, eager = fit(**settings), fit(**settings, compile=False)
    assert recorded.settings_["graph"]
    assert recorded.history_[-1]["lr"] < recorded.history_[0]["lr"]
    assert lines(recorded) == pytest.approx(lines(eager), abs=1e-5)


class Interrupt(Callback):
    """Ctrl-C in the middle of an epoch."""

    def on_batch_end(self, state):
        if state.total == 17:
            raise KeyboardInterrupt


def test_a_cut_training_goes_on_to_the_same_bits(tmp_path):
    settings = {"run": tmp_path / "run", "checkpoint_every": 5}
    with pytest.raises(KeyboardInterrupt):
        fit(**settings, callbacks=[Interrupt()])
    resumed, whole = fit(**settings), fit()
    for p, q in zip(resumed.module_.parameters(), whole.module_.parameters(), strict=True):
        assert torch.equal(p, q)


def test_every_term_of_a_replayed_step_is_kept():
    net = torch.nn.Linear(2, 3)
    x = torch.as_tensor(X, dtype=torch.float32)
    settings = Training(device="cuda", validation=0)
    objective = CrossEntropy() + L2(0.1)
    y = torch.as_tensor(Y)
    state = train_tensors(net, objective, x, y, training=settings, epochs=3, batch_size=50, lr=1e-3)
    assert all(0 < line["l2"] < line["loss"] for line in state.history)


class Reads(CrossEntropy):
    """Reads a number on the host in every step, which no graph can record."""

    def terms(self, net, batch, phase):
        terms = super().terms(net, batch, phase)
        return {"loss": terms["loss"] * float(terms["loss"] > 0)}


def test_what_cannot_be_recorded_is_done_step_by_step():
    net = torch.nn.Linear(2, 3)
    x, y = torch.as_tensor(X, dtype=torch.float32), torch.as_tensor(Y)
    settings = Training(device="cuda", validation=0)
    state = train_tensors(net, Reads(), x, y, training=settings, epochs=3, batch_size=50, lr=1e-2)
    assert state.history[-1]["loss"] < state.history[0]["loss"]


def test_after_a_step_that_cannot_be_recorded_random_numbers_are_still_drawn():
    net = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.Dropout(0.5), torch.nn.Linear(16, 3))
    x, y = torch.as_tensor(X, dtype=torch.float32), torch.as_tensor(Y)
    settings = Training(device="cuda", validation=0)
    state = train_tensors(net, Reads(), x, y, training=settings, epochs=2, batch_size=50, lr=1e-3)
    assert state.history[-1]["loss"] > 0
    assert torch.rand(3, device="cuda").unique().numel() == 3
