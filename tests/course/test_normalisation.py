"""Batch and layer normalisation inside networks that the library's loop trains."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from castalia import Callback, Training
from castalia.nets.vision import ConvNet
from castalia.nn import TransformerEncoderBlock, recompute_batch_norm
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


def fit(net, x=X, *, epochs=3, batch_size=16, lr=0.05, validation=None, **own):
    training = Training(**{"optimizer": "sgd", **own})
    return train_tensors(
        net, SquaredError(), x, Y, training=training, epochs=epochs, batch_size=batch_size, lr=lr,
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


def convolutional(**settings):
    """A small network of the library, one convolution and batch norm, with scales and shifts."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = ConvNet(2, 1, widths=(4,), convs=1, **settings).double()
        for norm in (m for m in net.modules() if isinstance(m, nn.BatchNorm2d)):
            nn.init.normal_(norm.weight, 1, 0.3)
            nn.init.normal_(norm.bias)
    return net


def normalised(norm, h):
    """The formula, over the batch and the places of each channel of h (B, C, H, W)."""
    mean = h.mean((0, 2, 3), keepdim=True)
    variance = (h - mean).square().mean((0, 2, 3), keepdim=True)
    scaled = (h - mean) / (variance + 1e-5).sqrt()
    return norm.weight[:, None, None] * scaled + norm.bias[:, None, None]


def test_a_convolutional_network_normalises_every_channel_over_the_batch():
    net = convolutional()
    conv, norm, _ = net.features.stage1
    assert conv.bias is None  # beta does its work
    x = torch.randn(5, 2, 4, 4, generator=SOURCE, dtype=torch.float64, requires_grad=True)
    h = F.conv2d(x, conv.weight, padding=1)
    maps = normalised(norm, h).clamp_min(0).mean((2, 3))
    assert_close(net(x), F.linear(maps, net.head.classes.weight, net.head.classes.bias))
    plain = convolutional(batch_norm=False)
    assert not [m for m in plain.modules() if isinstance(m, nn.BatchNorm2d)]
    assert torch.autograd.gradcheck(lambda x: norm(conv(x)), x)
    # A constant added to the whole batch of h changes nothing: the gradient sums to 0.
    h = h.detach().requires_grad_()
    norm(h).pow(3).sum().backward()
    assert_close(h.grad.sum((0, 2, 3)), torch.zeros(4).double())
    assert h.grad.abs().max() > 0.1


# ---- batch normalisation at test time ----


IMAGES = torch.randn(64, 2, 4, 4, generator=SOURCE, dtype=torch.float64) + 0.5


def test_moving_averages_follow_the_batches_and_serve_validation():
    net, seen = convolutional(), []
    conv, norm, _ = net.features.stage1
    norm.register_forward_pre_hook(
        lambda layer, inputs: seen.append(inputs[0].detach()) if layer.training else None
    )
    state = fit(net, IMAGES, validation=(IMAGES, Y))
    mean, variance = torch.zeros(4).double(), torch.ones(4).double()
    for h in seen:
        mean = 0.9 * mean + 0.1 * h.mean((0, 2, 3))
        variance = 0.9 * variance + 0.1 * h.transpose(0, 1).flatten(1).var(1)
    assert len(seen) == 3 * 4
    assert_close(norm.running_mean, mean)
    assert_close(norm.running_var, variance)
    with torch.no_grad():
        places = (slice(None), None, None)
        h = (conv(IMAGES) - mean[places]) / (variance + 1e-5).sqrt()[places]
        maps = (h * norm.weight[places] + norm.bias[places]).clamp_min(0).mean((2, 3))
        loss = (net.head.classes(maps) - Y).square().mean()
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


def test_a_block_normalises_every_vector_over_its_features():
    torch.manual_seed(0)
    block = TransformerEncoderBlock(6, heads=2).double()
    for norm in (block.norm1, block.norm2):
        nn.init.normal_(norm.weight, 1, 0.3)
        nn.init.normal_(norm.bias)

    def by_hand(norm, h):
        mean = h.mean(-1, keepdim=True)
        variance = (h - mean).square().mean(-1, keepdim=True)
        return norm.weight * (h - mean) / (variance + 1e-5).sqrt() + norm.bias

    x = torch.randn(3, 4, 6, generator=SOURCE, dtype=torch.float64)
    h = by_hand(block.norm1, x + block.attention(x))
    assert_close(block(x), by_hand(block.norm2, h + block.feed_forward(h)))
    assert_close(block(x)[:1], block(x[:1]))  # other rows do not matter
    before = TransformerEncoderBlock(6, heads=2, pre_norm=True).double()
    h = x + before.attention(by_hand(before.norm1, x))
    assert_close(before(x), h + before.feed_forward(by_hand(before.norm2, h)))


def test_layer_norm_does_not_depend_on_other_rows_and_batch_norm_does():
    for norm, independent in ((nn.LayerNorm, True), (nn.BatchNorm1d, False)):
        net = network(norm).train()
        assert torch.allclose(net(X[:10])[:4], net(X[:4])) is independent
        whole, parts = network(norm), network(norm)
        fit(whole, epochs=1)
        fit(parts, epochs=1, accumulate=4)
        assert torch.allclose(weights(whole), weights(parts)) is independent
