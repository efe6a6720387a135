"""Small healthy trainings with unusual outputs, targets or networks; each gives its diagnosis."""

from __future__ import annotations

import math

import torch
from tests.diagnose.healthy.loops import MANY, blobs, low_rank, mlp, trained
from torch import nn
from torch.nn import functional as F

from castalia.diagnose import Diagnosis, watch


def angular_margin() -> Diagnosis:
    """ArcFace: cosines times thirty begin far above the logarithm of the number of classes."""
    x, y = blobs(classes=6)

    class Angles(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.centres = mlp(8, 32, 16), nn.Parameter(torch.randn(6, 16))

        def forward(self, v):
            return F.linear(F.normalize(self.embed(v)), F.normalize(self.centres))

    net = Angles()

    def loss(index):
        angle = net(x[index]).clamp(-0.999, 0.999).acos()
        hot = F.one_hot(y[index], 6)
        return F.cross_entropy(30 * torch.cos(angle + 0.3 * hot), y[index])

    return trained(net, loss, len(x), lr=1e-2, steps=MANY)


def discs(rows: int, size: int = 16) -> tuple[torch.Tensor, torch.Tensor]:
    at, radius = 4 + 8 * torch.rand(rows, 2, 1, 1), 2 + 2 * torch.rand(rows, 1, 1)
    line = torch.arange(size)
    inside = (line[:, None] - at[:, 0]) ** 2 + (line - at[:, 1]) ** 2 < radius**2
    y = inside.float()[:, None]
    return y + 0.5 * torch.randn_like(y), y


def overlap_of_regions() -> Diagnosis:
    """Segmentation by the Dice loss, written out."""
    x, y = discs(200)
    net = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 3, padding=1))

    def loss(index):
        p, t = net(x[index]).sigmoid().flatten(1), y[index].flatten(1)
        return (1 - (2 * (p * t).sum(1) + 1) / (p.sum(1) + t.sum(1) + 1)).mean()

    return trained(net, loss, len(x), batch=16, steps=75, lr=1e-2)


def pictures_through_tanh() -> Diagnosis:
    """Images between -1 and 1 drawn again by a decoder that ends in tanh."""
    x = discs(300)[1] * 2 - 1
    net = nn.Sequential(
        nn.Conv2d(1, 8, 4, 2, 1), nn.ReLU(), nn.Conv2d(8, 16, 4, 2, 1), nn.ReLU(),
        nn.ConvTranspose2d(16, 8, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(8, 1, 4, 2, 1), nn.Tanh(),
    )  # fmt: skip
    return trained(net, lambda i: F.mse_loss(net(x[i]), x[i]), len(x), batch=16, lr=5e-3)


def shares_by_a_sigmoid() -> Diagnosis:
    """A share between 0 and 1 fitted by squares: a sigmoid suits it."""
    x = torch.randn(600, 4)
    y = torch.sigmoid(x[:, :1] + x[:, 1:2] * x[:, 2:3] + 0.2 * torch.randn(600, 1))
    net = mlp(4, 32, 1, last=nn.Sigmoid())
    return trained(net, lambda i: F.mse_loss(net(x[i]), y[i]), len(x), lr=1e-2)


def amounts_by_a_softplus() -> Diagnosis:
    x = torch.rand(600, 4)
    y = x.sum(1, keepdim=True) * (1 + 0.1 * torch.randn(600, 1))
    net = mlp(4, 32, 1, last=nn.Softplus())
    return trained(net, lambda i: F.mse_loss(net(x[i]), y[i]), len(x), steps=MANY)


def series_between_zero_and_one() -> Diagnosis:
    line = torch.arange(700) / 8
    series = (torch.sin(line) + 0.5 * torch.sin(2.3 * line) + 0.1 * torch.randn(700)) / 3.2 + 0.5
    x = series.unfold(0, 16, 1)[:-1, :, None]
    y = series[16:, None]

    class Last(nn.Module):
        def __init__(self):
            super().__init__()
            self.read, self.out = nn.LSTM(1, 16, batch_first=True), nn.Linear(16, 1)

        def forward(self, v):
            return self.out(self.read(v)[0][:, -1])

    net = Last()
    return trained(net, lambda i: F.mse_loss(net(x[i]), y[i]), len(x), lr=1e-2)


def a_flow() -> Diagnosis:
    """Coupling layers: minus the log-likelihood, sum by sum."""
    x = blobs(columns=2, classes=3)[0] / 3

    class Coupling(nn.Module):
        def __init__(self):
            super().__init__()
            self.nets = nn.ModuleList(mlp(1, 24, 2) for _ in range(4))

        def forward(self, v):
            total = torch.zeros(len(v))
            for net in self.nets:
                kept, moved = v.chunk(2, 1)
                log, shift = net(kept).chunk(2, 1)
                log = torch.tanh(log)
                v, total = torch.cat([moved * log.exp() + shift, kept], 1), total + log.sum(1)
            return v, total

    net = Coupling()

    def loss(index):
        z, volume = net(x[index])
        return (0.5 * z.square().sum(1) + math.log(2 * math.pi) - volume).mean()

    return trained(net, loss, len(x), batch=64)


def neighbours_in_a_graph() -> Diagnosis:
    """Two graph convolutions on one graph, whole, every step; few nodes have labels."""
    y = torch.arange(120) % 3
    joined = (y[:, None] == y) & (torch.rand(120, 120) < 0.08)
    edges = (joined | joined.T | torch.eye(120, dtype=torch.bool)).float()
    share, x = edges / edges.sum(1, keepdim=True), F.one_hot(y, 3) + 1.0 * torch.randn(120, 3)
    labelled = torch.randperm(120)[:60]

    class Graph(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(3, 16), nn.Linear(16, 3)

        def forward(self, v):
            return self.two(share @ torch.relu(self.one(share @ v)))

    net = Graph()
    loss = lambda _: F.cross_entropy(net(x)[labelled], y[labelled])  # noqa: E731
    return trained(net, loss, 120, lr=1e-2, steps=75)


def judged_by_a_frozen_network() -> Diagnosis:
    """A perceptual loss: features of a network that is not trained."""
    x = low_rank()
    judge = mlp(12, 32, 16)
    for p in judge.parameters():
        p.requires_grad_(False)
    net = mlp(12, 24, 12)

    def loss(index):
        made, true = net(x[index] + 0.2 * torch.randn(32, 12)), x[index]
        return F.mse_loss(judge(made), judge(true)) + 0.1 * F.l1_loss(made, true)

    return trained(net, loss, len(x))


def sharpness_aware() -> Diagnosis:
    """SAM: two passes a step, the second from where the first led uphill."""
    x, y = blobs()
    net = mlp(8, 32, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    doctor = watch(net, optimizer)
    for _ in range(100):
        index = torch.randint(0, len(x), (32,))
        F.cross_entropy(net(x[index]), y[index]).backward()
        with torch.no_grad():
            size = torch.stack([p.grad.norm() for p in net.parameters()]).norm()
            moves = [0.05 * p.grad / size for p in net.parameters()]
            for p, move in zip(net.parameters(), moves, strict=True):
                p += move
        optimizer.zero_grad()
        F.cross_entropy(net(x[index]), y[index]).backward()
        with torch.no_grad():
            for p, move in zip(net.parameters(), moves, strict=True):
                p -= move
        optimizer.step()
        optimizer.zero_grad()
    doctor.close()
    return doctor.diagnosis()


def continued_gently() -> Diagnosis:
    """A trained network trained on at a tiny rate."""
    x, y = blobs()
    net = mlp(8, 32, 4)
    first = torch.optim.Adam(net.parameters(), lr=1e-2)
    for _ in range(300):
        first.zero_grad()
        F.cross_entropy(net(x), y).backward()
        first.step()
    loss = lambda i: F.cross_entropy(net(x[i]), y[i])  # noqa: E731
    return trained(net, loss, len(x), lr=1e-5, steps=100)


def self_normalising_and_deep() -> Diagnosis:
    x, y = blobs()
    layers: list[nn.Module] = []
    for inputs in (8, *[32] * 7):
        layer = nn.Linear(inputs, 32)
        nn.init.normal_(layer.weight, std=1 / math.sqrt(inputs))
        nn.init.zeros_(layer.bias)
        layers += [layer, nn.SELU()]
    net = nn.Sequential(*layers, nn.Linear(32, 4))
    return trained(net, lambda i: F.cross_entropy(net(x[i]), y[i]), len(x), lr=1e-3)


def normalised_over_eight_rows() -> Diagnosis:
    x, y = blobs()
    net = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 4))
    return trained(net, lambda i: F.cross_entropy(net(x[i]), y[i]), len(x), batch=8, steps=400)


def alike_or_not() -> Diagnosis:
    """Siamese pairs, one in two alike."""
    x, y = blobs()
    net = mlp(8, 32, 8)

    def loss(index):
        other = torch.randint(0, len(x), (64,))
        same = (y[index] == y[other]).float() * 2 - 1
        return F.cosine_embedding_loss(net(x[index]), net(x[other]), same, margin=0.2)

    return trained(net, loss, len(x), batch=64)


def letters_without_places() -> Diagnosis:
    """Connectionist temporal classification."""
    words = torch.randint(1, 5, (300, 3))
    x = F.one_hot(words, 5).float().repeat_interleave(3, 1) + 0.3 * torch.randn(300, 9, 5)

    class Hearer(nn.Module):
        def __init__(self):
            super().__init__()
            self.read, self.out = nn.GRU(5, 16, batch_first=True), nn.Linear(16, 5)

        def forward(self, v):
            return self.out(self.read(v)[0]).log_softmax(2).transpose(0, 1)

    net = Hearer()

    def loss(index):
        lengths = torch.full((32,), 9), torch.full((32,), 3)
        return F.ctc_loss(net(x[index]), words[index], *lengths)

    return trained(net, loss, len(x), lr=1e-2, steps=100)


HEADS = {
    name: function
    for name, function in list(globals().items())
    if getattr(function, "__annotations__", {}).get("return") == "Diagnosis"
}
