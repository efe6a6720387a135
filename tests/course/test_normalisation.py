"""Batch and layer normalisation inside networks that the library's loop trains."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia import Callback, Training
from castalia.nn import recompute_batch_norm
from castalia.objectives import SquaredError
from castalia.testing import train_tensors

SOURCE = torch.Generator().manual_seed(0)
X = 3 * torch.randn(64, 4, generator=SOURCE, dtype=torch.float64) + 1
Y = torch.tanh(X[:, :1]) + 0.2 * X[:, 1:2]


class WrittenOut(nn.Module):
    """h' = (h - mu_B) / sqrt(var_B + eps), out = gamma h' + beta; also over each row's features."""

    def __init__(self, width, dim=0):
        super().__init__()
        self.dim = dim
        self.weight = nn.Parameter(torch.ones(width, dtype=torch.float64))
        self.bias = nn.Parameter(torch.zeros(width, dtype=torch.float64))

    def forward(self, h):
        mean = h.mean(self.dim, keepdim=True)
        variance = (h - mean).square().mean(self.dim, keepdim=True)
        return self.weight * (h - mean) / (variance + 1e-5).sqrt() + self.bias


def network(norm, after=False, **settings):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        middle = [nn.Tanh(), norm(8, **settings)] if after else [norm(8, **settings), nn.Tanh()]
        return nn.Sequential(nn.Linear(4, 8), *middle, nn.Linear(8, 1)).double()


def fit(net, *, epochs=3, batch_size=16, lr=0.05, validation=None, **own):
    training = Training(**{"optimizer": "sgd", **own})
    return train_tensors(
        net, SquaredError(), X, Y, training=training, epochs=epochs, batch_size=batch_size, lr=lr,
        validation=validation,
    )  # fmt: skip


def weights(net):
    return torch.cat([p.detach().flatten() for p in net.parameters()])


# ---- batch normalisation in training ----


def test_a_network_with_batch_norm_is_trained_as_one_with_the_formula_written_out():
    mine, other = network(nn.BatchNorm1d), network(WrittenOut)
    first, second = fit(mine, epochs=5), fit(other, epochs=5)
    assert_close(weights(mine), weights(other), rtol=1e-9, atol=1e-9)
    assert first.history[-1]["loss"] == pytest.approx(second.history[-1]["loss"])
    assert first.history[-1]["loss"] < 0.7 * first.history[0]["loss"]


def test_the_gradient_flows_through_the_mean_and_the_variance_of_the_batch():
    layer = nn.BatchNorm1d(3, track_running_stats=False).double()
    x = torch.randn(5, 3, generator=SOURCE, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, w, b: layer(x), (x, layer.weight, layer.bias))
    # A constant added to the whole batch changes nothing: the gradient over the batch sums to 0.
    layer(x).pow(3).sum().backward()
    assert_close(x.grad.sum(0), torch.zeros(3).double())
    assert x.grad.abs().max() > 0.1


# ---- batch normalisation at test time ----


class Inputs(Callback):
    """Keeps what the normalisation saw in training, batch by batch."""

    def __init__(self, net):
        self.seen = []
        net[1].register_forward_pre_hook(
            lambda layer, inputs: self.seen.append(inputs[0].detach()) if layer.training else None
        )


def test_moving_averages_follow_the_batches_and_serve_validation():
    net = network(nn.BatchNorm1d, momentum=0.2)
    inputs = Inputs(net)
    state = fit(net, validation=(X, Y))
    mean, variance = torch.zeros(8).double(), torch.ones(8).double()
    for h in inputs.seen:
        mean = 0.8 * mean + 0.2 * h.mean(0)
        variance = 0.8 * variance + 0.2 * h.var(0)
    assert len(inputs.seen) == 3 * 4
    assert_close(net[1].running_mean, mean)
    assert_close(net[1].running_var, variance)
    h = (net[0](X) - mean) / (variance + 1e-5).sqrt() * net[1].weight + net[1].bias
    loss = (net[3](torch.tanh(h)) - Y).square().mean()
    assert state.history[-1]["val_loss"] == pytest.approx(loss.item())


@pytest.mark.parametrize("average", ["ema", "swa"])
def test_averaged_weights_come_with_averaged_statistics(average):
    net = network(nn.BatchNorm1d)
    seen = []

    class Watch(Callback):
        def on_batch_end(self, state):
            seen.append(net[1].running_mean.clone())

    state = fit(net, epochs=8, average=average, callbacks=[Watch()], validation=(X, Y))
    if average == "swa":  # of the ends of the last quarter of the epochs
        expected = (seen[27] + seen[31]) / 2
    else:
        expected = torch.zeros(8).double()
        for t, mean in enumerate(seen):
            expected = torch.lerp(mean, expected, min(0.999, (1 + t) / (10 + t)))
    assert_close(net[1].running_mean, expected)
    with torch.no_grad():
        loss = (net.eval()(X) - Y).square().mean()
    assert state.history[-1]["val_loss"] == pytest.approx(loss.item())


def test_a_global_pass_gives_outputs_whose_mean_is_beta_and_deviation_gamma():
    net = network(nn.BatchNorm1d, eps=1e-12)
    fit(net, epochs=10)
    layer = net[1]

    def distance():
        out = net[:2](X)
        return (out.mean(0) - layer.bias).abs().max() + (
            out.std(0, correction=0) - layer.weight.abs()
        ).abs().max()

    assert distance() > 1e-3  # moving averages lag behind
    recompute_batch_norm(net, X.split(16))
    assert distance() < 1e-9


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_batch_norm_may_stand_before_or_after_the_non_linearity(after):
    net = network(nn.BatchNorm1d, after)
    place = 2 if after else 1
    state = fit(net, epochs=40, lr=0.2)
    assert state.history[-1]["loss"] < 0.3 * state.history[0]["loss"]
    layer, out = net[place].train(), net[: place + 1](X)
    assert out.shape == (64, 8)
    assert_close(out.mean(0), layer.bias)
    assert_close(out.std(0, correction=0), layer.weight.abs(), rtol=1e-3, atol=1e-4)


# ---- layer normalisation ----


def test_a_network_with_layer_norm_is_trained_as_one_with_the_formula_written_out():
    mine, other = network(nn.LayerNorm), network(WrittenOut, dim=1)
    fit(mine, epochs=5)
    fit(other, epochs=5)
    assert_close(weights(mine), weights(other), rtol=1e-9, atol=1e-9)


def test_layer_norm_does_not_look_at_other_rows_and_batch_norm_does():
    for norm, independent in ((nn.LayerNorm, True), (nn.BatchNorm1d, False)):
        net = network(norm).train()
        assert torch.allclose(net(X[:10])[:4], net(X[:4])) is independent
        whole, parts = network(norm), network(norm)
        fit(whole, epochs=1)
        fit(parts, epochs=1, accumulate=4)
        assert torch.allclose(weights(whole), weights(parts)) is independent
