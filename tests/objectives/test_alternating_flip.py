"""A mirror that alternates with the epochs, through the loop and across a resume."""

import contextlib

import numpy as np
import torch
from torch import nn

from castalia import Callback, Training
from castalia.data.augment import AlternatingFlip
from castalia.objectives import Augmented, SquaredError
from castalia.protocols import Batch
from castalia.testing import train_tensors


class Seen(SquaredError):
    """Keeps the images that it is shown."""

    def __init__(self):
        super().__init__()
        self.images = []

    def terms(self, net, batch, phase):
        self.images += list(batch.x.detach().clone())
        return super().terms(net, batch, phase)


def rows(n=20):
    source = torch.Generator().manual_seed(0)
    return torch.randn(n, 1, 4, 4, generator=source), torch.randn(n, 1, generator=source)


def test_every_image_is_seen_from_both_sides_in_any_two_epochs():
    x, y = rows()
    seen = Seen()
    objective = Augmented(seen, AlternatingFlip())
    net = nn.Sequential(nn.Flatten(), nn.Linear(16, 1))
    training = Training(validation=0, watch=False, verbose=False)
    train_tensors(net, objective, x, y, training=training, epochs=4, batch_size=6)
    sides = np.zeros((4, 20), dtype=int)
    for i, image in enumerate(seen.images):
        for row in range(20):
            if torch.equal(image, x[row]) or torch.equal(image, x[row].flip(-1)):
                sides[i // 20, row] = 1 if torch.equal(image, x[row]) else -1
    assert (np.abs(sides) == 1).all()
    assert (sides[1:] == -sides[:-1]).all()
    assert 4 <= (sides[0] == 1).sum() <= 16


def test_counting_goes_on_from_a_saved_state():
    x, _ = rows(8)
    first = Augmented(SquaredError(), AlternatingFlip())
    first.steps = 2
    batch = Batch(x, x)
    net = nn.Identity().train()
    first.terms(net, batch, "train")
    first.terms(net, batch, "train")  # another micro-batch
    first.after_step(net)
    again = Augmented(SquaredError(), AlternatingFlip())
    again.steps = 2
    again.load_state_dict(first.state_dict())
    assert int(again.taken) == 1
    assert again.load_state_dict({}) is None
    assert again.taken is None


class Stop(Callback):
    """Breaks a training off after three epochs."""

    def on_epoch_start(self, state):
        if state.epoch == 3:
            raise KeyboardInterrupt


def test_a_resumed_training_mirrors_as_one_that_never_stopped(tmp_path):
    x, y = rows()
    ends = []
    for run, callbacks in ((None, ()), (tmp_path / "run", (Stop(),)), (tmp_path / "run", ())):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Flatten(), nn.Linear(16, 1))
        training = Training(validation=0, watch=False, verbose=False, callbacks=callbacks)
        objective = Augmented(SquaredError(), AlternatingFlip())
        with contextlib.suppress(KeyboardInterrupt):
            train_tensors(net, objective, x, y, training=training, epochs=5, batch_size=6, run=run)
        ends.append(net[1].weight.detach())
    assert torch.equal(ends[0], ends[2])
