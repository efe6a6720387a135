"""The rate falls when the loss stands still, and goes on falling after a resume."""

import pytest
import torch
from torch import nn

from castalia import Callback, Training
from castalia.objectives import SquaredError
from castalia.optim import plateau, warmup
from castalia.protocols import Stage
from castalia.testing import train_tensors

RANDOM = torch.Generator().manual_seed(0)
X = torch.randn(48, 3, generator=RANDOM, dtype=torch.float64)
Y = X[:, :1] + torch.randn(48, 1, generator=RANDOM, dtype=torch.float64)
HALF = plateau(factor=0.5, patience=2, threshold=0.2)


class Interrupt(Callback):
    """Ctrl-C after some steps."""

    def __init__(self, step):
        self.step = step

    def on_batch_end(self, state):
        if state.total == self.step:
            raise KeyboardInterrupt


def fit(objective=None, run=None, callbacks=(), validate=True, epochs=12, **own):
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 1)).double()
    training = Training(**{"schedule": HALF, **own}, callbacks=callbacks)
    state = train_tensors(
        net,
        objective if objective is not None else SquaredError(),
        X[:32],
        Y[:32],
        validation=(X[32:], Y[32:]) if validate else None,
        training=training,
        epochs=epochs,
        lr=0.05,
        run=run,
    )
    return net, state


def rates(state):
    return [line["lr"] for line in state.history]


@pytest.mark.parametrize("watched", ["val_loss", "loss"])
def test_the_rate_of_an_epoch_follows_torch_on_the_losses_before_it(watched):
    _, state = fit(validate=watched == "val_loss", epochs=16)
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.05)
    other = torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimizer, factor=0.5, patience=1, threshold=0.2
    )
    for line in state.history:
        assert line["lr"] == pytest.approx(optimizer.param_groups[0]["lr"])
        other.step(line[watched])
    assert len(set(rates(state))) >= 3


@pytest.mark.parametrize("step", [3, 8, 15, 16, 23])
def test_an_interrupted_training_ends_with_the_same_bits(step, tmp_path):
    own = {"schedule": warmup(HALF, steps=5), "average": ("ema", 0.5), "checkpoint_every": 1}
    whole, expected = fit(run=tmp_path / "whole", **own)
    with pytest.raises(KeyboardInterrupt):
        fit(run=tmp_path / "cut", callbacks=[Interrupt(step)], **own)
    resumed, state = fit(run=tmp_path / "cut", **own)
    assert rates(state) == rates(expected)
    assert rates(state)[-1] < 0.05 / 1.9
    for mine, other in zip(resumed.parameters(), whole.parameters(), strict=True):
        assert torch.equal(mine, other)


def test_a_warm_up_of_plateau_rises_and_then_drops():
    _, state = fit(schedule=warmup(HALF, steps=6), epochs=12)  # two steps an epoch
    assert rates(state)[:3] == pytest.approx([0.05 * 2 / 6, 0.05 * 4 / 6, 0.05])
    assert rates(state)[-1] < 0.05 / 1.9


def test_each_stage_begins_with_the_whole_rate():
    stages = [Stage("first", SquaredError(), epochs=10), Stage("second", SquaredError(), epochs=2)]
    _, state = fit(stages)
    assert rates(state)[9] < 0.05
    assert rates(state)[10] == 0.05


def test_the_rate_reaches_the_optimizer():
    stopped, _ = fit(schedule=plateau(factor=0.0, patience=1, threshold=1.0), epochs=2)
    later, state = fit(schedule=plateau(factor=0.0, patience=1, threshold=1.0), epochs=9)
    assert rates(state) == [0.05] * 2 + [0.0] * 7
    assert torch.equal(stopped[0].weight, later[0].weight)
