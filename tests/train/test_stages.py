"""Two phases, and stages in order: the loop's odd trainings."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from castalia import Callback, Training
from castalia.objectives import Objective, SquaredError
from castalia.protocols import Phase, Stage
from castalia.testing import train_tensors

# ---- a GAN on a one-dimensional Gaussian ----


class GAN(nn.Module):
    def __init__(self):
        super().__init__()
        self.generator = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
        self.critic = nn.Sequential(nn.Linear(1, 24), nn.LeakyReLU(0.2), nn.Linear(24, 1))


class Adversarial(Objective):
    """The non-saturating game: the critic tells real from made, the generator is taken for real."""

    def __init__(self, every=1):
        self.every, self.order = every, []

    def phases(self, net):
        return [
            Phase("critic", list(net.critic.parameters())),
            Phase("generator", list(net.generator.parameters()), every=self.every, lr_scale=0.5),
        ]

    def terms(self, net, batch, phase):
        self.order.append(phase)
        made = net.generator(torch.randn_like(batch.x))
        if phase == "generator":
            return {"loss": F.softplus(-net.critic(made)).mean()}
        real = F.softplus(-net.critic(batch.x)).mean()
        return {"loss": real + F.softplus(net.critic(made.detach())).mean(), "real": real}


def gaussian(n=1000):
    return 3 + 0.5 * torch.randn(n, 1, generator=torch.Generator().manual_seed(0))


def test_a_gan_in_two_phases_matches_mean_and_spread_of_a_gaussian():
    torch.manual_seed(0)
    net = GAN()
    training = Training(average=("ema", 0.99), optimizer=betas, validation=0)
    state = train_tensors(
        net, Adversarial(), gaussian(), training=training, epochs=60, batch_size=128, lr=0.01
    )
    with torch.no_grad():
        noise = torch.randn(4000, 1, generator=torch.Generator().manual_seed(1))
        made = net.generator(noise)
    assert float(made.mean()) == pytest.approx(3.0, abs=0.25)
    assert float(made.std()) == pytest.approx(0.5, abs=0.25)
    assert {"critic", "generator", "real", "loss"} <= state.history[-1].keys()


def betas(parameters, lr):
    """Adam as GANs use it: without momentum."""
    return torch.optim.Adam(parameters, lr=lr, betas=(0.0, 0.99))


def test_each_phase_moves_only_its_own_part():
    class OnlyCritic(Adversarial):
        def phases(self, net):
            return super().phases(net)[:1]

    torch.manual_seed(0)
    net = GAN()
    before = {k: v.clone() for k, v in net.state_dict().items()}
    train_tensors(net, OnlyCritic(), gaussian(64), training=Training(validation=0))
    moved = {k for k, v in net.state_dict().items() if not torch.equal(v, before[k])}
    assert moved == {k for k in before if k.startswith("critic")}


def test_a_phase_steps_on_every_nth_batch_and_its_mean_leaves_the_others_out(tmp_path):
    objective = Adversarial(every=4)
    training = Training(validation=0, checkpoint_every=3, run="x")
    torch.manual_seed(0)
    net = GAN()
    state = train_tensors(
        net, objective, gaussian(160), training=training, lr=1e-9, run=tmp_path / "run"
    )
    expected = [p for i in range(10) for p in ("critic", *(["generator"] if i % 4 == 0 else []))]
    assert objective.order == expected
    assert state.history[0]["generator"] == pytest.approx(math.log(2), abs=0.4)


def test_a_training_whose_only_phase_is_seldom_due_has_not_diverged():
    class Seldom(SquaredError):
        def phases(self, net):
            return [Phase("train", list(net.parameters()), every=3)]

    x = torch.ones(64, 1)
    state = train_tensors(nn.Linear(1, 1), Seldom(), x, 2 * x, epochs=2)
    assert math.isfinite(state.history[-1]["loss"])


def test_a_phase_repeats_its_step():
    class Twice(SquaredError):
        def phases(self, net):
            return [Phase("train", list(net.parameters()), repeat=2)]

    nets = [nn.Linear(1, 1) for _ in range(2)]
    nets[1].load_state_dict(nets[0].state_dict())
    x = torch.ones(16, 1)
    sgd = Training(optimizer="sgd", validation=0)
    train_tensors(nets[0], Twice(), x, 2 * x, training=sgd, epochs=1)
    train_tensors(nets[1], SquaredError(), x, 2 * x, training=sgd, epochs=2)
    assert torch.equal(nets[0].weight, nets[1].weight)


# ---- greedy layer-wise pre-training ----


class Stack(nn.Module):
    """An autoencoder grown layer by layer."""

    def __init__(self):
        super().__init__()
        self.encoders = nn.ModuleList([nn.Linear(6, 4), nn.Linear(4, 2)])
        self.decoders = nn.ModuleList([nn.Linear(4, 6), nn.Linear(2, 4)])
        self.head = nn.Linear(2, 1)

    def code(self, x, depth):
        for encoder in self.encoders[:depth]:
            x = torch.tanh(encoder(x))
        return x

    def forward(self, x):
        return self.head(self.code(x, 2))


class Layer(Objective):
    """Reconstruct the code below; train this layer alone."""

    def __init__(self, depth):
        self.depth = depth

    def phases(self, net):
        layers = net.encoders[self.depth], net.decoders[self.depth]
        return [Phase("layer", [p for layer in layers for p in layer.parameters()])]

    def terms(self, net, batch, phase):
        below = net.code(batch.x, self.depth).detach()
        above = torch.tanh(net.encoders[self.depth](below))
        noisy = F.dropout(above, 0.1)  # draws random numbers, so that resuming must restore them
        return {"loss": (net.decoders[self.depth](noisy) - below).square().mean()}


def rows():
    random = torch.Generator().manual_seed(0)
    return torch.randn(80, 2, generator=random) @ torch.randn(2, 6, generator=random)


STAGES = [
    Stage("first layer", Layer(0), epochs=4, lr=0.02),
    Stage("second layer", Layer(1), epochs=5, lr=0.01),
    Stage("whole", SquaredError(), epochs=2),
]


class Snapshots(Callback):
    """Keeps the weights at the end of every epoch."""

    def __init__(self):
        self.taken = []

    def on_epoch_end(self, state):
        self.taken.append(
            (state.stage, {k: v.clone() for k, v in state.net.state_dict().items()}, state.lr)
        )


def stacked(run=None, callbacks=(), **settings):
    torch.manual_seed(0)
    net = Stack()
    y = rows()[:, :1]
    training = Training(validation=0, callbacks=callbacks, run=run, **settings)
    state = train_tensors(net, STAGES, rows(), y, training=training, epochs=3, lr=0.03, run=run)
    return net, state


def changed(before, after):
    return {k.rsplit(".", 1)[0] for k in before if not torch.equal(before[k], after[k])}


def test_each_stage_trains_its_layer_and_leaves_the_others_bit_for_bit():
    watch = Snapshots()
    _, state = stacked(callbacks=[watch])
    ends = {stage: weights for stage, weights, _ in watch.taken}
    torch.manual_seed(0)
    start = Stack().state_dict()
    assert changed(start, ends["first layer"]) == {"encoders.0", "decoders.0"}
    assert changed(ends["first layer"], ends["second layer"]) == {"encoders.1", "decoders.1"}
    assert changed(ends["second layer"], ends["whole"]) == {"encoders.0", "encoders.1", "head"}
    assert [line["stage"] for line in state.history] == (
        ["first layer"] * 4 + ["second layer"] * 5 + ["whole"] * 2
    )
    assert {stage: lr for stage, _, lr in watch.taken} == {
        "first layer": 0.02,
        "second layer": 0.01,
        "whole": 0.03,
    }
    losses = [line["loss"] for line in state.history[:4]]
    assert losses[-1] < 0.8 * losses[0]


@pytest.mark.parametrize("total", [3, 27, 33, 48, 52])
def test_an_interrupted_training_resumes_in_the_middle_of_its_stage(tmp_path, total):
    class Interrupt(Callback):
        def on_batch_end(self, state):
            if state.total == total:
                raise KeyboardInterrupt

    settings = {"checkpoint_every": 4, "average": ("ema", 0.9)}
    whole, one = stacked(tmp_path / "whole", **settings)
    with pytest.raises(KeyboardInterrupt):
        stacked(tmp_path / "cut", [Interrupt()], **settings)
    resumed, other = stacked(tmp_path / "cut", **settings)
    for key, value in whole.state_dict().items():
        assert torch.equal(value, resumed.state_dict()[key]), key
    assert [line["loss"] for line in one.history] == [line["loss"] for line in other.history]


def test_patience_ends_its_own_stage_only():
    torch.manual_seed(0)
    net, x = Stack(), rows()
    noise = torch.randn(80, 1, generator=torch.Generator().manual_seed(5))
    stages = [Stage("one", SquaredError(), epochs=200), Stage("two", SquaredError(), epochs=200)]
    state = train_tensors(
        net,
        stages,
        x,
        noise,
        validation=(x + 1, -noise),
        training=Training(patience=3),
        lr=0.05,
    )
    names = [line["stage"] for line in state.history]
    assert 4 <= names.count("one") < 200
    assert 4 <= names.count("two") < 200
    assert state.best["stage"] == 1
    assert state.stopped == "no better validation loss for 3 epochs"


def test_every_stage_averages_its_own_weights():
    watch = Snapshots()
    torch.manual_seed(0)
    net = nn.Linear(6, 1)
    training = Training(average="swa", optimizer="sgd", validation=0, callbacks=[watch])
    stages = [Stage(str(i), SquaredError(), epochs=8) for i in range(2)]
    train_tensors(net, stages, rows(), rows()[:, :1], training=training, lr=0.01)
    last, before = watch.taken[-1][1]["weight"], watch.taken[-2][1]["weight"]
    # The last quarter of eight epochs: the last two of this stage, none of the first.
    torch.testing.assert_close(net.weight.detach(), (last + before) / 2, rtol=0, atol=1e-7)
