"""Healthy trainings on tables."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.diagnose import Diagnosis, watch
from evidence.corpus.cases import case
from evidence.corpus.exercises._data import (
    Split,
    cancer,
    friedman,
    houses,
    rings,
    source,
    split,
    standardised,
    wine,
)
from evidence.corpus.exercises._loops import accuracy, balanced, batches, r2, train, verdict
from evidence.corpus.exercises._nets import mlp


@case(None, data="tabular", net="linear")
def logistic_regression_by_lbfgs(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    data = standardised(cancer(seed))
    net = nn.Linear(30, 1)
    optimizer = torch.optim.LBFGS(net.parameters(), max_iter=10, line_search_fn="strong_wolfe")
    doctor = watch(net, optimizer)

    def closure() -> Tensor:
        optimizer.zero_grad()
        logits = net(data.X).squeeze(1)
        penalty = 0.02 * net.weight.square().sum()
        loss = F.binary_cross_entropy_with_logits(logits, data.y.float()) + penalty
        loss.backward()
        return loss

    for _ in range(4):
        loss = optimizer.step(closure)
        doctor.log(loss=loss)
        with torch.no_grad():
            logits = net(data.X_val).squeeze(1)
            held_out = F.binary_cross_entropy_with_logits(logits, data.y_val.float())
        doctor.epoch(held_out.item(), accuracy(logits, data.y_val))
    return verdict(doctor, accuracy(logits, data.y_val))


@case(None, data="tabular", net="linear")
def softmax_regression_on_wine(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    net = nn.Linear(13, 3)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    data = standardised(wine(seed))
    return train(net, optimizer, nn.CrossEntropyLoss(), data, epochs=25, size=16, tell="module")


@case(None, data="tabular", net="mlp")
def regression_with_decay_and_early_stopping(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    data = friedman(seed, n_train=800)
    net, loss_fn = mlp(8, 64, 64, 1), nn.MSELoss()
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=1e-2)
    doctor = watch(net, optimizer, loss_fn)
    best, patience = float("inf"), 5
    for _ in range(60):
        for x, y in batches(data.X, data.y, 32):
            optimizer.zero_grad()
            loss_fn(net(x), y).backward()
            optimizer.step()
        with torch.no_grad():
            out = net(data.X_val)
            held_out = loss_fn(out, data.y_val).item()
        doctor.epoch(held_out, r2(out, data.y_val))
        best, patience = (held_out, 5) if held_out < best else (best, patience - 1)
        if patience == 0:
            break
    return verdict(doctor, r2(out, data.y_val))


@case(None, data="tabular", net="mlp")
def house_prices_with_huber_loss(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    data = standardised(houses(seed), targets=True)
    net = mlp(6, 64, 32, 1, activation=nn.SiLU)
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    steps = 25 * 16
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    return train(
        net, optimizer, F.huber_loss, data, epochs=25, score=r2, tell="nothing", schedule=schedule
    )


@case(None, data="tabular", net="mlp")
def rings_with_dropout(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 32), nn.ReLU(),
                        nn.Linear(32, 2))  # fmt: skip
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    return train(net, optimizer, F.cross_entropy, rings(seed), epochs=15, tell="all")


@case(None, data="tabular", net="mlp")
def rare_cases_with_class_weights(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    g = source(seed)
    y = (torch.rand(2000, generator=g) < 0.08).long()
    X = torch.randn(2000, 5, generator=g) + 2.2 * y[:, None] * torch.tensor([1.0, 1, -1, 0, 0])
    data = Split(X[:1400], y[:1400], X[1400:], y[1400:])
    net = mlp(5, 16, 2)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    weight = len(data.y) / (2.0 * torch.bincount(data.y))
    return train(
        net, optimizer, nn.CrossEntropyLoss(weight=weight), data, epochs=10, score=balanced,
        tell="module", report="score",
    )  # fmt: skip


@case(None, data="tabular", net="mlp")
def several_labels_at_once(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    X = torch.randn(1200, 8, generator=source(seed))
    tags = torch.stack([X[:, i] + X[:, i + 1] * X[:, i + 2] > 0.2 for i in range(5)], 1).float()
    data = split(X, tags, seed, 900)
    net = mlp(8, 64, 64, 5)
    optimizer = torch.optim.Adam(net.parameters(), lr=4e-3, weight_decay=1e-4)

    def score(out: Tensor, y: Tensor) -> float:
        return ((out > 0) == y.bool()).float().mean().item()

    return train(
        net, optimizer, nn.BCEWithLogitsLoss(), data, epochs=15, score=score, tell="module"
    )


@case(None, data="tabular", net="mlp")
def counts_by_poisson_regression(seed: int) -> Diagnosis:
    """The score is the explained part of the logarithm of the rate."""
    torch.manual_seed(seed)
    g = source(seed)
    X = torch.randn(1400, 4, generator=g)
    log_rate = 1.5 + 0.5 * X[:, :1] - 0.4 * X[:, 1:2] + 0.3 * X[:, 2:3].abs()
    y = torch.poisson(log_rate.exp(), generator=g)
    y[1000:] = log_rate[1000:].exp()
    data = Split(X[:1000], y[:1000], X[1000:], y[1000:])
    net = mlp(4, 32, 1)
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)

    def score(out: Tensor, rate: Tensor) -> float:
        return r2(out, rate.log())

    return train(net, optimizer, nn.PoissonNLLLoss(), data, epochs=12, score=score, tell="module")


@case(None, data="tabular", net="mlp")
def mean_and_spread_by_gaussian_likelihood(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    g = source(seed)
    X = torch.randn(1200, 3, generator=g)
    noise = 0.1 + 0.2 * X[:, 2:].sigmoid()
    y = torch.sin(1.5 * X[:, :1]) + 0.5 * X[:, 1:2] + noise * torch.randn(1200, 1, generator=g)
    data = split(X, y, seed, 900)
    net = mlp(3, 48, 48, 2, activation=nn.Tanh)
    optimizer = torch.optim.Adam(net.parameters(), lr=8e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 15)
    doctor = watch(net, optimizer)
    for _ in range(15):
        for x, target in batches(data.X, data.y, 32):
            mean, raw = net(x).chunk(2, 1)
            loss = F.gaussian_nll_loss(mean, target, F.softplus(raw) + 1e-3)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 5.0)
            optimizer.step()
            doctor.log(loss=loss)
        schedule.step()
        with torch.no_grad():
            mean, raw = net(data.X_val).chunk(2, 1)
            held_out = F.gaussian_nll_loss(mean, data.y_val, F.softplus(raw) + 1e-3)
        doctor.epoch(held_out.item(), r2(mean, data.y_val))
    return verdict(doctor, r2(mean, data.y_val))


class Factors(nn.Module):
    """Users and films; a rating is the product of their factors plus their biases."""

    def __init__(self, users: int, films: int, rank: int) -> None:
        super().__init__()
        self.user, self.film = nn.Embedding(users, rank), nn.Embedding(films, rank)
        self.user_bias, self.film_bias = nn.Embedding(users, 1), nn.Embedding(films, 1)
        for table in (self.user, self.film, self.user_bias, self.film_bias):
            nn.init.normal_(table.weight, std=0.3)

    def forward(self, pairs: Tensor) -> Tensor:
        u, f = pairs.unbind(1)
        match = (self.user(u) * self.film(f)).sum(1, keepdim=True)
        return match + self.user_bias(u) + self.film_bias(f)


@case(None, data="ratings", net="embedding")
def films_by_factors_with_two_optimizers(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    g = source(seed)
    taste, style = torch.randn(60, 2, generator=g), torch.randn(50, 2, generator=g)
    pairs = torch.cartesian_prod(torch.arange(60), torch.arange(50))
    rating = (taste[pairs[:, 0]] * style[pairs[:, 1]]).sum(1, keepdim=True)
    rating = rating / rating.std() + 0.1 * torch.randn(len(pairs), 1, generator=g)
    data = split(pairs, rating, seed, 2400)
    net = Factors(60, 50, 3)
    tables = torch.optim.Adam([*net.user.parameters(), *net.film.parameters()], lr=0.02)
    biases = torch.optim.SGD([*net.user_bias.parameters(), *net.film_bias.parameters()], lr=0.1)
    doctor = watch(net, [tables, biases])
    for _ in range(12):
        for x, y in batches(data.X, data.y, 64):
            loss = F.mse_loss(net(x), y)
            for optimizer in (tables, biases):
                optimizer.zero_grad()
            loss.backward()
            for optimizer in (tables, biases):
                optimizer.step()
            doctor.log(loss=loss)
        with torch.no_grad():
            out = net(data.X_val)
        doctor.epoch(F.mse_loss(out, data.y_val).item(), r2(out, data.y_val))
    return verdict(doctor, r2(out, data.y_val))
