"""What the course says of convolutional layers: symmetries, pooling, features, small trainings."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.testing import assert_close

from castalia.nets.vision import ConvNet, LeNet
from castalia.nn import (
    GlobalPool,
    MultistepResidual,
    Residual,
    Unpool2d,
    convolve,
    recording,
    summary,
)
from castalia.objectives import CrossEntropy
from castalia.testing import train_tensors
from castalia.train import Training
from castalia.utils.seeds import seed_scope

PLAIN = Training(validation=0, verbose=False)


@pytest.fixture(scope="module")
def digits():
    """Images (1797, 1, 8, 8) of pixels from 0 to 1, in random order, and their classes."""
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))
    x = torch.tensor(data.images[order] / 16, dtype=torch.float32)[:, None]
    return x, torch.tensor(data.target[order])


@torch.no_grad()
def accuracy(net, x, y):
    return (net.eval()(x).argmax(dim=1) == y).float().mean().item()


def trained(build, x, y, *, epochs, lr=3e-3, batch_size=64, seed=0):
    with seed_scope(seed):
        net = build()
    settings = {"epochs": epochs, "batch_size": batch_size, "lr": lr, "seed": seed}
    train_tensors(net, CrossEntropy(), x, y, training=PLAIN, **settings)
    return net


# ---- symmetries ----


def test_a_convolution_of_a_shifted_image_is_the_shifted_convolution():
    torch.manual_seed(0)
    x, kernel = (torch.randn(1, 2, n, n, dtype=torch.float64) for n in (20, 3))
    for down, right in ((1, 0), (0, 3), (4, 2)):
        moved = convolve(x.roll((down, right), (2, 3)), kernel)
        here = convolve(x, kernel)
        assert here.std() > 1
        assert_close(moved[..., down:, right:], here[..., : 18 - down, : 18 - right])
    circle = convolve(x, kernel, padding="same", border="circular")
    around = convolve(x.roll((5, 7), (2, 3)), kernel, padding="same", border="circular")
    assert_close(around, circle.roll((5, 7), (2, 3)))


def test_a_convolution_does_not_follow_a_rotation_or_a_scaling():
    torch.manual_seed(0)
    x, kernel = (torch.randn(1, 1, n, n, dtype=torch.float64) for n in (12, 3))

    def conv(x):
        return convolve(x, kernel, padding="same")

    turned = conv(torch.rot90(x, 1, (2, 3))) - torch.rot90(conv(x), 1, (2, 3))
    twice = nn.Upsample(scale_factor=2)
    scaled = conv(twice(x)) - twice(conv(x))
    size = conv(x).abs().mean()
    assert turned.abs().mean() > 0.3 * size
    assert scaled.abs().mean() > 0.3 * size
    symmetric = torch.tensor([[1.0, 2, 1], [2, 5, 2], [1, 2, 1]], dtype=torch.float64)[None, None]
    kernel = symmetric  # turned, it is itself: then the convolution does follow
    assert_close(conv(torch.rot90(x, 1, (2, 3))), torch.rot90(conv(x), 1, (2, 3)))


def test_a_small_shift_changes_fewer_values_after_max_pooling():
    torch.manual_seed(0)
    conv = nn.Conv2d(1, 4, 3, bias=False)
    x = torch.zeros(50, 1, 24, 24)  # points of light
    x.view(50, -1).scatter_(1, torch.rand(50, 576).topk(6).indices, 1.0)
    before, after = (F.relu(conv(v)) for v in (x, x.roll(1, 3)))

    def unchanged(a, b):
        seen = (a != 0) | (b != 0)
        return (a == b)[seen].float().mean().item()

    plain = unchanged(before, after)
    pool = Unpool2d(4, 2).pool
    pooled = unchanged(pool(before)[0], pool(after)[0])
    assert plain < 0.1
    assert pooled > plain + 0.3


# ---- pooling and shapes ----


def windows(x, f, s):
    return x.unfold(2, f, s).unfold(3, f, s).flatten(4)  # (B, C, h, w, f f)


@pytest.mark.parametrize("f, s", [(2, 2), (3, 2), (5, 2)])
def test_max_pooling_is_the_largest_value_of_each_window_of_each_channel(f, s):
    x = torch.randn(2, 3, 11, 9)
    assert_close(nn.MaxPool2d(f, s)(x), windows(x, f, s).amax(dim=4))
    assert summary(nn.MaxPool2d(f, s), (3, 11, 9)).field == (f, f)


def test_mean_pooling_is_the_mean_of_each_window_of_each_channel():
    torch.manual_seed(0)
    net = LeNet(3, 10, pooling="average", activation="tanh")
    with recording(net, ("features.s2", "features.s4")) as seen:
        net(torch.randn(2, 3, 28, 28))
    assert [tuple(out.shape) for _, _, out in seen] == [(2, 6, 14, 14), (2, 16, 5, 5)]
    for _, given, found in seen:
        assert_close(found, windows(given, 2, 2).mean(dim=4))
        assert given.std() > 0.1
    assert summary(nn.AvgPool2d(3, 2), (3, 11, 9)).layers[1].kind == "mean pool 3, s2"


def test_flattening_loses_nothing_and_fixes_the_size():
    x = torch.randn(2, 3, 4, 5)
    flat = nn.Flatten()(x)
    assert flat.shape == (2, 60)
    assert torch.equal(nn.Unflatten(1, (3, 4, 5))(flat), x)
    net = nn.Sequential(nn.Flatten(), nn.Linear(60, 2))
    assert summary(net, (3, 4, 5)).layers[1].output == (60,)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        net(torch.zeros(2, 3, 5, 5))


def test_a_layer_has_three_stages():
    torch.manual_seed(0)
    net = ConvNet(2, 4, widths=(3, 5), convs=1, kernel=5, batch_norm=False)
    conv, x = net.features.stage1[0], torch.randn(2, 2, 8, 8)
    by_hand = F.max_pool2d(F.conv2d(x, conv.weight, conv.bias, padding=2).clamp_min(0), 2)
    assert_close(net.features[:2](x), by_hand)
    conv = net.features.stage2[0]
    last = F.conv2d(by_hand, conv.weight, conv.bias, padding=2).clamp_min(0)
    scores = F.linear(last.mean(dim=(2, 3)), net.head.classes.weight, net.head.classes.bias)
    assert_close(net(x), scores)


def test_a_network_without_dense_layers_runs_on_any_size():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), GlobalPool(), nn.Linear(4, 3))
    for size in ((5, 5), (17, 9), (64, 80)):
        assert net(torch.rand(2, 1, *size)).shape == (2, 3)
        assert summary(net, (1, *size)).parameters == 4 * 9 + 4 + 4 * 3 + 3


# ---- features ----

SOBEL = torch.tensor([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]])


def bars(angle):
    """Draw a wave along a direction, (1, 1, 16, 16)."""
    y, x = torch.meshgrid(torch.arange(16.0), torch.arange(16.0), indexing="ij")
    radians = torch.deg2rad(torch.tensor(float(angle)))
    return torch.sin(0.8 * (x * radians.cos() + y * radians.sin()))[None, None]


@pytest.mark.parametrize("number, angle", [(0, 0), (1, 45), (2, 90), (3, 135)])
def test_each_filter_of_a_bank_answers_to_edges_of_its_own_direction(number, angle):
    diagonal = torch.tensor([[-2.0, -1.0, 0.0], [-1.0, 0.0, 1.0], [0.0, 1.0, 2.0]])
    bank = torch.stack([SOBEL, diagonal, SOBEL.T, diagonal.flip(1)])[:, None]  # (4, 1, 3, 3)
    maps = convolve(bars(angle), bank, flip=False)
    assert maps.shape == (1, 4, 14, 14)
    energy = maps.square().mean(dim=(0, 2, 3))
    assert energy.argmax() == number
    assert energy[(number + 2) % 4] < 0.01 * energy[number]


def orientation(kernel):
    """Return how much of a kernel's structure lies in one direction, from 0 to 1.

    Eigenvalues of the mean outer product of its gradients: equal for a blob or for noise of many
    directions, one of them zero for an edge.
    """
    down, right = torch.gradient(
        F.interpolate(kernel[None, None], scale_factor=4, mode="bicubic", align_corners=True)[0, 0]
    )
    tensor = torch.stack(
        [torch.stack([(a * b).sum() for b in (down, right)]) for a in (down, right)]
    )
    small, large = torch.linalg.eigvalsh(tensor)
    return ((large - small) / (large + small)).item()


def test_first_filters_of_a_trained_network_are_more_oriented_than_random_ones(digits):
    x, y = digits

    def build():
        return nn.Sequential(
            nn.Conv2d(1, 16, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 16, 3),
            nn.ReLU(),
            GlobalPool("max"),
            nn.Linear(16, 10),
        )

    with seed_scope(0):
        random = build()
    net = trained(build, x[:900], y[:900], epochs=15, lr=1e-2)
    assert accuracy(net, x[900:], y[900:]) > 0.95
    before, after = (
        np.mean([orientation(k) for k in n[0].weight.detach()[:, 0]]) for n in (random, net)
    )
    assert after > before + 0.05
    with torch.no_grad(), recording(net, ["0"]) as seen:
        net(x[:1])
    ((_, picture, maps),) = seen
    kernel = net[0].weight[3:4], net[0].bias[3]
    assert_close(maps[:, 3:4], convolve(picture, kernel[0], padding=2, flip=False) + kernel[1])


# ---- small trainings ----


def test_a_label_for_every_pixel_is_learnt_on_toy_masks():
    generator = torch.Generator().manual_seed(0)
    y = torch.zeros(160, 16, 16, dtype=torch.long)
    corners = torch.randint(0, 10, (160, 2), generator=generator).tolist()
    for mask, (i, j) in zip(y, corners, strict=True):
        mask[i : i + 6, j : j + 6] = 1
    x = y[:, None] + 0.5 * torch.randn(160, 1, 16, 16, generator=generator)

    def build():
        return nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(8, 8, 5, padding=2),
            nn.ReLU(),
            nn.Conv2d(8, 2, 1),
        )

    net = trained(build, x[:120], y[:120], epochs=20, lr=1e-2, batch_size=16)
    assert net(x[:1]).shape == (1, 2, 16, 16)
    assert accuracy(net, x[120:], y[120:]) > 0.97
    single = ((x[120:, 0] > 0.5).long() == y[120:]).float().mean().item()
    assert single < 0.9  # a pixel alone does not tell


def patterns(count, seed):
    """Draw one of three 3 x 3 signs at a random place in noise, (B, 1, 16, 16)."""
    signs = torch.tensor(
        [[[0, 1, 0], [1, 1, 1], [0, 1, 0]], [[1, 0, 1], [0, 1, 0], [1, 0, 1]], [[1, 1, 1]] * 3]
    )
    generator = torch.Generator().manual_seed(seed)
    x = 0.2 * torch.randn(count, 1, 16, 16, generator=generator)
    y = torch.randint(0, 3, (count,), generator=generator)
    corners = torch.randint(0, 14, (count, 2), generator=generator).tolist()
    for row, sign, (i, j) in zip(x, signs[y], corners, strict=True):
        row[0, i : i + 3, j : j + 3] += sign
    return x, y


def test_a_pooled_head_has_fewer_weights_and_a_smaller_gap_than_a_flattened_one():
    (x, y), (fresh, truth) = patterns(150, 0), patterns(300, 1)

    def build(*head):
        return nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), *head)

    heads = {
        "flat": lambda: build(nn.Flatten(), nn.Linear(16 * 256, 3)),
        "pooled": lambda: build(GlobalPool("max"), nn.Linear(16, 3)),
    }
    gaps, counts = {}, {}
    for name, head in heads.items():
        net = trained(head, x, y, epochs=40, lr=1e-2, batch_size=25)
        gaps[name] = accuracy(net, x, y) - accuracy(net, fresh, truth)
        counts[name] = summary(net, (1, 16, 16)).parameters
    assert counts == {"flat": 160 + 12_291, "pooled": 160 + 51}
    assert gaps["pooled"] < 0.1
    assert gaps["flat"] > gaps["pooled"] + 0.2


def spirals(n, seed):
    """Two arms that wind one and a half times around each other, (n, 2), and which it is."""
    random = np.random.default_rng(seed)
    turn, arm = random.uniform(0.5, 3.2 * np.pi, n), random.integers(0, 2, n)
    x = np.stack([turn * np.cos(turn + np.pi * arm), turn * np.sin(turn + np.pi * arm)], axis=1)
    noise = random.normal(0, 0.03, (n, 2))
    return torch.tensor(x / 6 + noise, dtype=torch.float32), torch.tensor(arm)


class Short(nn.Module):
    """A change of at most a fifth in every direction."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return 0.2 * torch.tanh(self.linear(x))


def test_of_short_steps_a_multistep_network_gets_farther_than_a_residual_one():
    (x, y), (fresh, truth) = spirals(600, 0), spirals(2000, 1)

    def build(kind):
        blocks = [Short() for _ in range(6)]
        stack = kind(blocks) if kind is MultistepResidual else kind(*map(Residual, blocks))
        return nn.Sequential(nn.Linear(2, 4), stack, nn.Linear(4, 2))

    found = {}
    for kind in (nn.Sequential, MultistepResidual):
        nets = [
            trained(lambda k=kind: build(k), x, y, epochs=30, lr=2e-2, seed=seed)
            for seed in range(3)
        ]
        found[kind] = np.mean([accuracy(net, fresh, truth) for net in nets])
    weights = [sum(p.numel() for p in build(kind).parameters()) for kind in found]
    assert weights == [142, 142 + 5]  # a k for every block but the first
    assert found[MultistepResidual] > found[nn.Sequential] + 0.1


def test_a_multistep_network_is_as_accurate_as_a_residual_one_with_as_many_weights(digits):
    x, y = digits[0].flatten(1), digits[1]

    def build(kind):
        blocks = [nn.Sequential(nn.Linear(8, 8), nn.ReLU()) for _ in range(10)]
        stack = kind(blocks)
        return nn.Sequential(nn.Linear(64, 8), stack, nn.Linear(8, 10))

    def residual(blocks):
        return nn.Sequential(*map(Residual, blocks))

    found = {}
    for kind in (residual, MultistepResidual):
        nets = [
            trained(lambda k=kind: build(k), x[:600], y[:600], epochs=12, lr=1e-2, seed=seed)
            for seed in range(2)
        ]
        found[kind] = np.mean([accuracy(net, x[600:], y[600:]) for net in nets])
    assert found[residual] > 0.85
    assert found[MultistepResidual] >= found[residual] - 0.02  # seeds differ by 0.03
    more = [sum(p.numel() for p in build(kind).parameters()) for kind in found]
    assert more[1] == more[0] + 9  # a k for every block but the first
