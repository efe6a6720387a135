"""Columns and targets as they came: CST201, 202, 203."""

import torch
import torch.nn.functional as F
from torch import nn

from castalia.diagnose import Diagnosis
from evidence.corpus.cases import case
from evidence.corpus.exercises._data import (
    Split,
    cancer,
    clouds,
    diabetes,
    digits,
    friedman,
    houses,
    source,
    split,
    standardised,
    wine,
)
from evidence.corpus.exercises._loops import SECONDS, accuracy, batches, r2, scores, train
from evidence.corpus.exercises._nets import Recurrent, SmallCNN, mlp


@case("CST201", dose="severe", data="tabular", net="mlp")
def wine_in_its_own_units(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    data = wine(seed) if fault else standardised(wine(seed))
    net = mlp(13, 32, 3)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    return train(net, optimizer, nn.CrossEntropyLoss(), data, epochs=30, size=16, tell="module")


@case("CST201", dose="severe", data="images", net="cnn")
def pixels_up_to_255(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    data = digits(seed)
    if fault:
        data = data._replace(X=255 * data.X, X_val=255 * data.X_val)
    net = SmallCNN()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    return train(net, optimizer, F.cross_entropy, data, epochs=10, tell="nothing")


@case("CST201", dose="mild", data="tabular", net="mlp")
def an_income_among_ratios(seed: int, fault: bool = True) -> Diagnosis:
    """One column is in tens of thousands, all others are near one."""
    torch.manual_seed(seed)
    data = clouds(seed, classes=2)
    if fault:
        units = torch.ones(10)
        units[4] = 20_000.0
        data = data._replace(X=data.X * units, X_val=data.X_val * units)
    net = mlp(10, 32, 16, 1)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)

    def loss_fn(logits: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.binary_cross_entropy_with_logits(logits.squeeze(1), y.float())

    return train(net, optimizer, loss_fn, data, epochs=15)


@case("CST202", dose="severe", data="tabular", net="mlp")
def prices_in_dollars(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    data = houses(seed) if fault else standardised(houses(seed), targets=True)
    net = mlp(6, 64, 32, 1)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    return train(net, optimizer, nn.MSELoss(), data, epochs=20, score=r2, tell="module")


@case("CST202", dose="mild", data="tabular", net="mlp")
def progression_between_25_and_346(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    data = diabetes(seed)
    data = data if fault else standardised(data, targets=True)
    net = mlp(10, 16, 1)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    return train(net, optimizer, F.mse_loss, data, epochs=20, score=r2, report="score")


@case("CST202", dose="severe", data="series", net="gru")
def returns_of_a_ten_thousandth(seed: int, fault: bool = True) -> Diagnosis:
    """A loss of 1e-7 that looks like success; the network is worse than a constant."""
    torch.manual_seed(seed)
    g = source(seed)
    X = torch.randn(600, 10, 2, generator=g)
    y = X[:, -3:, :1].mean(1) - X[:, -1, 1:] * 0.5 + 0.2 * torch.randn(600, 1, generator=g)
    data = split(X, y * 1e-3 if fault else y, seed, 400)
    net = Recurrent(nn.GRU, 2, 24, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    return train(net, optimizer, F.mse_loss, data, epochs=10, score=r2, tell="all")


@case("CST203", dose="severe", data="tabular", net="mlp")
def a_column_that_was_constant_in_training(seed: int, fault: bool = True) -> Diagnosis:
    """Standardised by a spread of nearly nothing, it is huge wherever validation differs."""
    torch.manual_seed(seed)
    raw = cancer(seed)
    flag = torch.ones(len(raw.X), 1), (torch.rand(len(raw.X_val), 1) < 0.7).float()
    if fault:
        raw = raw._replace(
            X=torch.cat([raw.X, flag[0]], 1), X_val=torch.cat([raw.X_val, flag[1]], 1)
        )
    data = standardised(raw)
    net = mlp(data.X.shape[1], 32, 2)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    return train(net, optimizer, nn.CrossEntropyLoss(), data, epochs=15, tell="module")


# The loss is no number from the first step on; that is as right a first answer.
@case("CST203", dose="severe", data="tabular", net="mlp", accept=("CST105",))
def missing_ages_left_as_they_are(seed: int, fault: bool = True) -> Diagnosis:
    from castalia.diagnose import examine

    torch.manual_seed(seed)
    data = friedman(seed, n_train=400)
    if fault:
        gaps = torch.rand(len(data.X), generator=source(seed)) < 0.2
        X = data.X.clone()
        X[gaps, 2] = torch.nan
        data = data._replace(X=X)
    net, loss_fn = mlp(8, 32, 1), nn.MSELoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    _fit(net, optimizer, loss_fn, data, 15)
    scores.append(r2(net(data.X_val).nan_to_num().detach(), data.y_val))
    return examine(
        net,
        loss_fn,
        (data.X, data.y),
        (data.X_val, data.y_val),
        optimizer=optimizer,
        seconds=SECONDS,
    )


@case("CST203", dose="mild", data="tabular", net="mlp")
def numbers_of_customers_among_the_columns(seed: int, fault: bool = True) -> Diagnosis:
    """Account numbers, a currency that is always the same, and copies of other columns."""
    from castalia.diagnose import examine

    torch.manual_seed(seed)
    data = clouds(seed, n_train=160, classes=2, spread=1.5)
    if fault:
        data = standardised(Split(_with_numbers(data.X, seed), data.y,
                                  _with_numbers(data.X_val, seed + 50), data.y_val))  # fmt: skip
    net, loss_fn = mlp(data.X.shape[1], 32, 2), nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3, weight_decay=1e-3)
    _fit(net, optimizer, loss_fn, data, 12)
    scores.append(accuracy(net(data.X_val).detach(), data.y_val))
    return examine(
        net,
        loss_fn,
        (data.X, data.y),
        (data.X_val, data.y_val),
        optimizer=optimizer,
        seconds=SECONDS,
    )


def _with_numbers(X: torch.Tensor, seed: int) -> torch.Tensor:
    g = source(seed)
    numbers = [100_000.0 + torch.randperm(len(X), generator=g)[:, None] for _ in range(12)]
    return torch.cat([X, *numbers, torch.full((len(X), 2), 7.0), X[:, :2]], 1)


def _fit(net, optimizer, loss_fn, data: Split, epochs: int) -> None:
    for _ in range(epochs):
        for x, y in batches(data.X, data.y, 32):
            optimizer.zero_grad()
            loss_fn(net(x), y).backward()
            optimizer.step()
