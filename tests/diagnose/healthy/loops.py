"""Small healthy trainings with losses and loops of their own; each returns its diagnosis."""

from __future__ import annotations

import copy
import math

import torch
from torch import nn
from torch.nn import functional as F

from castalia.diagnose import Diagnosis, watch

STEPS = 150
MANY = 300  # for those that were once mistaken


def mlp(*sizes: int, last: nn.Module | None = None) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inputs, outputs in zip(sizes[:-1], sizes[1:], strict=True):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1], *([last] if last else []))


def blobs(rows: int = 600, columns: int = 8, classes: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    centres = 2 * torch.randn(classes, columns)
    y = torch.randint(0, classes, (rows,))
    return centres[y] + torch.randn(rows, columns), y


def low_rank(rows: int = 600, columns: int = 12, rank: int = 3) -> torch.Tensor:
    x = torch.randn(rows, rank) @ torch.randn(rank, columns) + 0.1 * torch.randn(rows, columns)
    return (x - x.mean(0)) / x.std(0)


def trained(net, loss_of, rows, *, lr=3e-3, batch=32, steps=STEPS, optimizer=None, schedule=None):
    """Train on random batches; ``loss_of`` is given the rows of one."""
    optimizer = optimizer or torch.optim.Adam(net.parameters(), lr=lr, fused=True)
    plan = schedule(optimizer) if schedule else None
    doctor = watch(net, optimizer)
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(torch.randint(0, rows, (batch,))).backward()
        optimizer.step()
        if plan is not None:
            plan.step()
    doctor.close()
    return doctor.diagnosis()


# ------------------------------------------------------------------- representations


def contrastive_pairs() -> Diagnosis:
    """InfoNCE between two noisy views, temperature 0.2."""
    x, _ = blobs()
    net = mlp(8, 32, 16)

    def loss(index):
        one, two = (F.normalize(net(x[index] + 0.3 * torch.randn(32, 8)), dim=1) for _ in range(2))
        return F.cross_entropy(one @ two.T / 0.2, torch.arange(32))

    return trained(net, loss, len(x))


def negative_cosine_with_stopped_gradient() -> Diagnosis:
    """SimSiam: the loss falls from 0 towards -1."""
    x, _ = blobs()
    net = nn.ModuleDict(
        {
            "encoder": nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(),
                                     nn.Linear(32, 16), nn.BatchNorm1d(16)),
            "predictor": mlp(16, 8, 16),
        }
    )  # fmt: skip
    net.forward = lambda v: (z := net["encoder"](v), net["predictor"](z))

    def loss(index):
        (z1, p1), (z2, p2) = (net(x[index] + 0.3 * torch.randn(64, 8)) for _ in range(2))
        pair = [F.cosine_similarity(p, z.detach()).mean() for p, z in ((p1, z2), (p2, z1))]
        return -0.5 * (pair[0] + pair[1])

    return trained(net, loss, len(x), batch=64, steps=MANY)


def triplets() -> Diagnosis:
    x, y = blobs()
    net = mlp(8, 32, 8)

    def loss(index):
        anchor, label = x[index], y[index]
        alike = torch.stack([x[y == c][torch.randint((y == c).sum(), ())] for c in label])
        other = torch.stack([x[y != c][torch.randint((y != c).sum(), ())] for c in label])
        return F.triplet_margin_loss(net(anchor), net(alike), net(other), margin=1.0)

    return trained(net, loss, len(x), steps=75)


def autoencoder() -> Diagnosis:
    x = low_rank()
    net = mlp(12, 16, 4, 16, 12)
    return trained(net, lambda i: F.mse_loss(net(x[i]), x[i]), len(x), steps=MANY)


def sparse_autoencoder() -> Diagnosis:
    """An activity penalty beside the error, by hand."""
    x = low_rank()
    encode, decode = mlp(12, 24, last=nn.ReLU()), nn.Linear(24, 12)
    net = nn.Sequential(encode, decode)

    def loss(index):
        code = encode(x[index])
        return (decode(code) - x[index]).pow(2).mean() + 0.01 * code.abs().mean()

    return trained(net, loss, len(x))


def tied_autoencoder() -> Diagnosis:
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(6, 12) / math.sqrt(12))

        def forward(self, x):
            return torch.tanh(x @ self.weight.T) @ self.weight

    x, net = low_rank(), Tied()
    return trained(net, lambda i: F.mse_loss(net(x[i]), x[i]), len(x), steps=MANY)


# ------------------------------------------------------------------- densities, noise, rewards


def mixture_density() -> Diagnosis:
    """A negative log-likelihood that ends below zero."""
    x = torch.rand(800, 1) * 2 - 1
    y = torch.sin(3 * x) + 0.05 * torch.randn(800, 1)
    net = mlp(1, 32, 32, 9)

    def loss(index):
        weight, mean, spread = net(x[index]).chunk(3, dim=1)
        parts = torch.distributions.Normal(mean, spread.clamp(-5, 3).exp()).log_prob(y[index])
        return -torch.logsumexp(parts + weight.log_softmax(1), dim=1).mean()

    return trained(net, loss, len(x), batch=64)


def a_mean_and_a_variance() -> Diagnosis:
    x = torch.randn(800, 3)
    y = x.sum(1) + 0.1 * (1 + x[:, 0].abs()) * torch.randn(800)
    net = mlp(3, 32, 2)

    def loss(index):
        mean, log = net(x[index]).unbind(1)
        return (0.5 * (y[index] - mean) ** 2 / log.exp() + 0.5 * log).mean()

    return trained(net, loss, len(x), batch=64)


def noise_predicted() -> Diagnosis:
    """Diffusion: the noise in the data can never be predicted wholly."""
    x = blobs(columns=2)[0] / 3
    net = mlp(3, 64, 64, 2)

    def loss(index):
        t, noise = torch.rand(64, 1), torch.randn(64, 2)
        keep = torch.cos(t * math.pi / 2)
        noisy = keep * x[index] + (1 - keep**2).sqrt() * noise
        return F.mse_loss(net(torch.cat([noisy, t], 1)), noise)

    return trained(net, loss, len(x), batch=64)


def policy_gradient() -> Diagnosis:
    """REINFORCE on a bandit with contexts: the loss means nothing by itself."""
    x, y = blobs()
    net = mlp(8, 32, 4)

    def loss(index):
        chance = torch.distributions.Categorical(logits=net(x[index]))
        action = chance.sample()
        reward = (action == y[index]).float()
        return -(chance.log_prob(action) * (reward - reward.mean())).mean()

    return trained(net, loss, len(x), batch=64)


def q_learning() -> Diagnosis:
    """Targets from a copy that lags behind, called without gradients."""
    net = mlp(2, 32, 32, 2)
    late = copy.deepcopy(net)
    state = torch.rand(1000, 2) * 2 - 1
    count = [0]

    def loss(index):
        s, a = state[index], torch.randint(0, 2, (64,))
        after = (s + 0.1 * (2 * a[:, None] - 1)).clamp(-1, 1)
        with torch.no_grad():
            wanted = -after.abs().sum(1) + 0.5 * late(after).amax(1)
        count[0] += 1
        if count[0] % 30 == 0:
            late.load_state_dict(net.state_dict())
        return F.smooth_l1_loss(net(s).gather(1, a[:, None])[:, 0], wanted)

    return trained(net, loss, 1000, batch=64, lr=1e-3, steps=MANY)


def equation_of_physics() -> Diagnosis:
    """u'' = -u with u(0) = 0, u'(0) = 1: a residual and two conditions, all squared."""
    net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))

    def slope(u, t):
        return torch.autograd.grad(u.sum(), t, create_graph=True)[0]

    def loss(index):
        t = (3 * torch.rand(64, 1)).requires_grad_()
        start = torch.zeros(1, 1, requires_grad=True)
        u, u0 = net(t), net(start)
        bent = slope(slope(u, t), t) + u
        return bent.pow(2).mean() + u0.pow(2).mean() + (slope(u0, start) - 1).pow(2).mean()

    return trained(net, loss, 64, steps=125)


def quantiles() -> Diagnosis:
    x = torch.randn(800, 3)
    y = x.sum(1, keepdim=True) + torch.randn(800, 1)
    net, levels = mlp(3, 32, 3), torch.tensor([0.1, 0.5, 0.9])

    def loss(index):
        off = y[index] - net(x[index])
        return torch.maximum(levels * off, (levels - 1) * off).mean()

    return trained(net, loss, len(x), batch=64)


def counts() -> Diagnosis:
    x = torch.randn(800, 4)
    y = torch.poisson((x[:, 0] + 0.5 * x[:, 1] + 1).exp())
    net = mlp(4, 32, 1)
    return trained(net, lambda i: F.poisson_nll_loss(net(x[i])[:, 0], y[i]), len(x), batch=64)


# ------------------------------------------------------------------- several tasks


def three_tasks_in_one_sum() -> Diagnosis:
    x, y = blobs()
    z = x[:, :2].sum(1, keepdim=True)
    trunk, heads = mlp(8, 32, last=nn.ReLU()), nn.ModuleList([nn.Linear(32, n) for n in (4, 1, 1)])
    net = nn.Sequential(trunk, heads)
    net.forward = lambda v: [head(trunk(v)) for head in heads]

    def loss(index):
        kind, value, sign = net(x[index])
        return (
            F.cross_entropy(kind, y[index])
            + 0.5 * F.mse_loss(value, z[index])
            + 0.1 * F.binary_cross_entropy_with_logits(sign, (z[index] > 0).float())
        )

    return trained(net, loss, len(x))


def tasks_weighed_by_their_uncertainty() -> Diagnosis:
    """The loss may well be negative."""
    x, y = blobs()
    z = x[:, :1] / 4

    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.trunk, self.out = mlp(8, 32, last=nn.ReLU()), nn.Linear(32, 5)
            self.logs = nn.Parameter(torch.zeros(2))

        def forward(self, v):
            return self.out(self.trunk(v)).split([4, 1], dim=1)

    net = Both()

    def loss(index):
        kind, value = net(x[index])
        parts = torch.stack([F.cross_entropy(kind, y[index]), F.mse_loss(value, z[index])])
        return (parts * torch.exp(-net.logs) + net.logs).sum()

    return trained(net, loss, len(x), steps=250)


def distilled() -> Diagnosis:
    x, y = blobs()
    teacher, net = mlp(8, 64, 4), mlp(8, 16, 4)
    for _ in range(100):
        F.cross_entropy(teacher(x), y).backward()
        with torch.no_grad():
            for p in teacher.parameters():
                p -= 0.3 * p.grad
                p.grad = None

    def loss(index):
        with torch.no_grad():
            wanted = (teacher(x[index]) / 4).softmax(1)
        out = net(x[index])
        soft = F.kl_div((out / 4).log_softmax(1), wanted, reduction="batchmean") * 16
        return 0.7 * soft + 0.3 * F.cross_entropy(out, y[index])

    return trained(net, loss, len(x))


# ------------------------------------------------------------------- loops


def accumulated_over_small_batches() -> Diagnosis:
    x, y = blobs()
    net = nn.Sequential(nn.Linear(8, 32), nn.LayerNorm(32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
    doctor = watch(net, optimizer)
    for _ in range(80):
        for _ in range(8):
            index = torch.randint(0, len(x), (4,))
            (F.cross_entropy(net(x[index]), y[index]) / 8).backward()
        optimizer.step()
        optimizer.zero_grad()
    doctor.close()
    return doctor.diagnosis()


def mixed_precision_with_a_scaler() -> Diagnosis:
    x, y = blobs()
    net = mlp(8, 64, 4)
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    doctor = watch(net, optimizer)
    for _ in range(STEPS):
        index = torch.randint(0, len(x), (32,))
        with torch.autocast("cpu", torch.bfloat16):
            loss = F.cross_entropy(net(x[index]), y[index])
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
    doctor.close()
    return doctor.diagnosis()


def warmed_up_and_cooled_down() -> Diagnosis:
    """A tiny transformer with a tenth of warm-up and a cosine."""
    x = torch.randint(0, 12, (800, 6))
    y = (x == 3).any(1).long() + (x == 5).any(1).long()

    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.place = nn.Embedding(12, 24), nn.Parameter(torch.randn(6, 24) * 0.02)
            self.block = nn.TransformerEncoderLayer(24, 2, 48, 0.1, batch_first=True)
            self.out = nn.Linear(24, 3)

        def forward(self, tokens):
            return self.out(self.block(self.embed(tokens) + self.place).mean(1))

    net = Reader()
    steps = 125

    def rate(step):
        if step < steps // 10:
            return (step + 1) / (steps // 10)
        return 0.5 * (1 + math.cos(math.pi * step / steps))

    return trained(
        net,
        lambda i: F.cross_entropy(net(x[i]), y[i]),
        len(x),
        steps=steps,
        optimizer=(o := torch.optim.AdamW(net.parameters(), lr=5e-3)),
        schedule=lambda _: torch.optim.lr_scheduler.LambdaLR(o, rate),
    )


def a_head_on_a_frozen_backbone() -> Diagnosis:
    """The backbone was trained before and stays in evaluation mode, as its statistics must."""
    x, y = blobs()
    back = nn.Sequential(nn.Linear(8, 64), nn.BatchNorm1d(64), nn.ReLU())
    before = nn.Sequential(back, nn.Linear(64, 8))
    sgd = torch.optim.SGD(before.parameters(), lr=0.1, momentum=0.9)
    for _ in range(100):
        sgd.zero_grad()
        F.mse_loss(before(x + torch.randn_like(x)), x).backward()
        sgd.step()
    for p in back.parameters():
        p.requires_grad_(False)
    net = nn.Sequential(back, nn.Linear(64, 4))
    net.train()
    back.eval()
    optimizer = torch.optim.Adam(net[1].parameters(), lr=1e-2)
    loss = lambda i: F.cross_entropy(net(x[i]), y[i])  # noqa: E731
    return trained(net, loss, len(x), optimizer=optimizer)


def one_row_at_a_time() -> Diagnosis:
    x = torch.randn(600, 5)
    y = x @ torch.randn(5, 1) + 0.1 * torch.randn(600, 1)
    net = nn.Linear(5, 1)
    sgd = torch.optim.SGD(net.parameters(), lr=0.02)
    loss = lambda i: (net(x[i]) - y[i]).square().mean()  # noqa: E731
    return trained(net, loss, len(x), batch=1, steps=600, optimizer=sgd)


def mixed_up_rows() -> Diagnosis:
    """Mixup: soft targets and a loss that stays well above zero."""
    x, y = blobs()
    hot, net = F.one_hot(y, 4).float(), mlp(8, 64, 4)

    def loss(index):
        other, share = torch.randint(0, len(x), (32,)), torch.rand(32, 1)
        mixed = share * x[index] + (1 - share) * x[other]
        return F.cross_entropy(net(mixed), share * hot[index] + (1 - share) * hot[other])

    return trained(net, loss, len(x))


# ------------------------------------------------------------------- words


def masked_words() -> Diagnosis:
    """A masked language model: most targets are left out."""
    x = torch.cumsum(torch.randint(1, 3, (600, 8)), 1) % 10

    class Filler(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(11, 16)
            self.read = nn.GRU(16, 16, batch_first=True, bidirectional=True)
            self.out = nn.Linear(32, 10)

        def forward(self, tokens):
            return self.out(self.read(self.embed(tokens))[0])

    net = Filler()

    def loss(index):
        hidden = torch.rand(32, 8) < 0.2
        seen = x[index].masked_fill(hidden, 10)
        wanted = x[index].masked_fill(~hidden, -100)
        return F.cross_entropy(net(seen).flatten(0, 1), wanted.flatten())

    return trained(net, loss, len(x), lr=2e-2, steps=75)


def words_by_negative_sampling() -> Diagnosis:
    class Pairs(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Embedding(40, 16), nn.Embedding(40, 16)

        def forward(self, a, b):
            return (self.one(a) * self.two(b)).sum(-1)

    net = Pairs()

    def loss(index):
        word = torch.randint(0, 40, (64,))
        near = (word // 4 * 4 + torch.randint(0, 4, (64,))) % 40
        drawn = torch.randint(0, 40, (64, 5))
        away = F.logsigmoid(-net(word[:, None], drawn)).sum(1)
        return -(F.logsigmoid(net(word, near)) + away).mean()

    return trained(net, loss, 64, batch=64, lr=1e-2)


LOOPS = {
    name: function
    for name, function in list(globals().items())
    if getattr(function, "__annotations__", {}).get("return") == "Diagnosis"
}
