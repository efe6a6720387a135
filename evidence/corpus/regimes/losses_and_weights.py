"""Losses that are sums, weights that are tiny, normalised or shrink."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.parametrizations import weight_norm

from evidence.corpus.regimes._data import digits, ratings, surface
from evidence.corpus.regimes._rates import regime


def batches(x: Tensor, size: int) -> list[Tensor]:
    return list(torch.randperm(len(x)).split(size))


@torch.no_grad()
def right(model: nn.Module, x: Tensor, y: Tensor) -> float:
    model.eval()
    return (model(x).argmax(1) == y).float().mean().item()


@torch.no_grad()
def explained(model: nn.Module, x: Tensor, y: Tensor) -> float:
    model.eval()
    return 1 - ((model(x) - y).square().mean() / y.var()).item()


def classify(model, optimizer, data, epochs=12, size=64, reduction="mean", scheduler=None) -> float:
    x, y, x_held, y_held = data
    criterion = nn.CrossEntropyLoss(reduction=reduction)
    for _ in range(epochs):
        model.train()
        for rows in batches(x, size):
            optimizer.zero_grad()
            loss = criterion(model(x[rows]), y[rows])
            loss.backward()
            optimizer.step()
            if scheduler is not None:
                scheduler.step()
        model.eval()
        with torch.no_grad():
            criterion(model(x_held), y_held)
    return right(model, x_held, y_held)


@regime(high=(10, 100), low=(0.01,), harmless=(0.1,))
def a_cross_entropy_summed_over_the_batch(seed: int, factor: float) -> float:
    model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=factor * 2e-3, momentum=0.9)
    return classify(model, optimizer, digits(seed), reduction="sum")


@regime(high=(10, 100), low=(0.1, 1 / 30, 0.01), data="table")
def squares_summed_over_the_batch(seed: int, factor: float) -> float:
    x, y, x_held, y_held = surface(seed)
    model = nn.Sequential(nn.Linear(3, 64), nn.Tanh(), nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=factor * 1e-3)
    for _ in range(60):
        for rows in batches(x, 50):
            loss = ((model(x[rows]) - y[rows]) ** 2).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return explained(model, x_held, y_held)


class Codec(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 64), nn.ReLU())
        self.mean, self.spread = nn.Linear(64, 6), nn.Linear(64, 6)
        self.decoder = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 64))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        h = self.encoder(x)
        mean, spread = self.mean(h), self.spread(h)
        z = mean + torch.randn_like(mean) * (0.5 * spread).exp()
        return self.decoder(z), mean, spread


@regime(high=(100,), low=(0.1, 1 / 30, 0.01), harmless=(10,), net="vae")
def a_variational_autoencoder_with_summed_terms(seed: int, factor: float) -> float:
    x, _, held, _ = digits(seed)
    x, held = (x + 1) / 2, (held + 1) / 2
    model = Codec()
    optimizer = torch.optim.Adam(model.parameters(), lr=factor * 1e-3)
    for _ in range(30):
        model.train()
        for rows in batches(x, 64):
            out, mean, spread = model(x[rows])
            data = F.binary_cross_entropy_with_logits(out, x[rows], reduction="sum")
            prior = -0.5 * (1 + spread - mean**2 - spread.exp()).sum()
            optimizer.zero_grad()
            (data + prior).backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        out = model(held)[0].sigmoid()
    return 1 - ((out - held).square().mean() / held.var(dim=0).mean()).item()


@regime(high=(100,), low=(0.1, 1 / 30, 0.01), harmless=(10,), net="cnn")
def batch_norm_under_a_large_decay(seed: int, factor: float) -> float:
    x, y, x_held, y_held = digits(seed)
    layers: list[nn.Module] = [nn.Unflatten(1, (1, 8, 8))]
    for a, b in ((1, 16), (16, 32)):
        layers += [nn.Conv2d(a, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU()]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(128, 10))
    optimizer = torch.optim.SGD(
        model.parameters(), lr=factor * 0.1, momentum=0.9, weight_decay=5e-3
    )
    epochs = 6
    steps = epochs * 22
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    data = x, y, x_held, y_held
    return classify(model, optimizer, data, epochs=epochs, scheduler=scheduler)


@regime(high=(100,), low=(0.01,), harmless=(0.1, 10))
def weights_of_a_direction_and_a_length(seed: int, factor: float) -> float:
    model = nn.Sequential(weight_norm(nn.Linear(64, 48)), nn.ReLU(), weight_norm(nn.Linear(48, 10)))
    optimizer = torch.optim.SGD(model.parameters(), lr=factor * 0.1, momentum=0.9)
    return classify(model, optimizer, digits(seed))


class Factors(nn.Module):
    """Users and films as short vectors that begin next to nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.users, self.films = nn.Embedding(120, 8), nn.Embedding(90, 8)
        for table in (self.users, self.films):
            nn.init.normal_(table.weight, std=0.01)

    def forward(self, pairs: Tensor) -> Tensor:
        return (self.users(pairs[:, 0]) * self.films(pairs[:, 1])).sum(1)


@regime(high=(10, 100), low=(0.1, 1 / 30, 0.01), data="ratings", net="factorisation")
def factors_that_begin_tiny(seed: int, factor: float) -> float:
    pairs, score, held, wanted = ratings(seed)
    model = Factors()
    optimizer = torch.optim.Adam(model.parameters(), lr=factor * 0.02, weight_decay=1e-5)
    for _ in range(15):
        model.train()
        for rows in batches(pairs, 128):
            loss = F.mse_loss(model(pairs[rows]), score[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            F.mse_loss(model(held), wanted)
    return explained(model, held, wanted)


@regime(low=(0.1, 1 / 30, 0.01), harmless=(10,), data="table")
def a_last_layer_that_begins_at_zero(seed: int, factor: float) -> float:
    x, y, x_held, y_held = surface(seed)
    model = nn.Sequential(
        nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)
    )
    nn.init.zeros_(model[-1].weight)
    nn.init.zeros_(model[-1].bias)
    optimizer = torch.optim.AdamW(model.parameters(), lr=factor * 3e-3)
    for _ in range(40):
        model.train()
        for rows in batches(x, 50):
            loss = F.mse_loss(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            F.mse_loss(model(x_held), y_held)
    return explained(model, x_held, y_held)


@regime(high=(10, 100), harmless=(0.1, 1 / 30))
def layer_norm_and_a_scaled_loss(seed: int, factor: float) -> float:
    x, y, x_held, y_held = digits(seed)
    model = nn.Sequential(
        nn.Linear(64, 64), nn.LayerNorm(64), nn.GELU(), nn.Linear(64, 64), nn.LayerNorm(64),
        nn.GELU(), nn.Linear(64, 10),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=factor * 2e-4, momentum=0.9)
    for _ in range(12):
        model.train()
        for rows in batches(x, 64):
            loss = 500 * F.cross_entropy(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            F.cross_entropy(model(x_held), y_held)
    return right(model, x_held, y_held)
