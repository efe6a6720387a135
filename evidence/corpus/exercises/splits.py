"""Training and validation rows that share too much, too little, or are too few: CST206 to 208."""

import torch
import torch.nn.functional as F
from torch import nn

from castalia.diagnose import Diagnosis, watch
from evidence.corpus.cases import case
from evidence.corpus.exercises._data import (
    Split,
    clouds,
    digits,
    friedman,
    source,
)
from evidence.corpus.exercises._loops import (
    SECONDS,
    accuracy,
    batches,
    r2,
    scores,
    train,
    verdict,
)
from evidence.corpus.exercises._nets import SmallCNN, mlp


@case("CST206", dose="severe", data="tabular", net="mlp")
def rows_repeated_before_they_were_split(seed: int, fault: bool = True) -> Diagnosis:
    """The rare class was drawn again and again first; its copies lie on both sides."""
    from castalia.diagnose import examine

    torch.manual_seed(seed)
    fresh = clouds(seed, n_train=300, classes=2, spread=5.0)
    rows, y = fresh.X, fresh.y
    if fault:
        again = torch.randint(len(rows), (500,), generator=source(seed))
        rows, y = rows[again], y[again]
    cut = 2 * len(rows) // 3
    data = Split(rows[:cut], y[:cut], rows[cut:], y[cut:])
    net, loss_fn = mlp(10, 128, 128, 2), nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    _fit(net, optimizer, loss_fn, data, 15)
    # What the validation promises beyond what fresh rows give.
    promised, kept = net(data.X_val).detach(), net(fresh.X_val).detach()
    scores.append(1 - accuracy(promised, data.y_val) + accuracy(kept, fresh.y_val))
    return examine(net, loss_fn, (data.X, data.y), (data.X_val, data.y_val), optimizer=optimizer,
                   seconds=SECONDS)  # fmt: skip


@case("CST206", dose="severe", data="tabular", net="mlp")
def a_column_written_after_the_fact(seed: int, fault: bool = True) -> Diagnosis:
    """The date of cancellation shows who cancelled."""
    torch.manual_seed(seed)
    data = clouds(seed, classes=2, spread=2.0)
    honest = data
    if fault:
        data = data._replace(
            X=_told(data.X, data.y, seed), X_val=_told(data.X_val, data.y_val, seed)
        )
    net, loss_fn = mlp(10, 32, 2), nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    doctor = watch(net, optimizer, task="multiclass")
    for _ in range(12):
        for x, y in batches(data.X, data.y, 32):
            logits = net(x)
            loss = loss_fn(logits, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss, outputs=logits, targets=y, inputs=x)
        with torch.no_grad():
            logits = net(data.X_val)
            doctor.epoch(loss_fn(logits, data.y_val).item(), accuracy(logits, data.y_val))
    # In use the column is not known yet.
    return verdict(doctor, accuracy(net(honest.X_val).detach(), data.y_val))


def _told(X: torch.Tensor, y: torch.Tensor, seed: int) -> torch.Tensor:
    X = X.clone()
    X[:, 3] = 2.0 * y - 1 + 0.1 * torch.randn(len(y), generator=source(seed))
    return X


@case("CST207", dose="severe", data="images", net="mlp")
def sixty_images(seed: int, fault: bool = True) -> Diagnosis:
    from castalia.diagnose import examine

    torch.manual_seed(seed)
    data = digits(seed, n_train=60 if fault else 1200, flat=True)
    net, loss_fn = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)), F.cross_entropy
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3, weight_decay=1e-3)
    _fit(net, optimizer, loss_fn, data, 40 if fault else 10)
    scores.append(accuracy(net(data.X_val).detach(), data.y_val))
    return examine(net, loss_fn, (data.X, data.y), (data.X_val, data.y_val), optimizer=optimizer,
                   task="multiclass", seconds=SECONDS)  # fmt: skip


# From beside the loop too few rows and an overfitted network look the same.
@case("CST207", dose="severe", data="tabular", net="mlp", accept=("CST401",))
def forty_houses(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    data = friedman(seed, n_train=40 if fault else 800)
    net = mlp(8, 32, 1)
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    epochs = 100 if fault else 15
    return train(net, optimizer, nn.MSELoss(), data, epochs=epochs, score=r2, tell="module")


@case("CST208", dose="severe", data="images", net="cnn")
def new_images_not_divided(seed: int, fault: bool = True) -> Diagnosis:
    """Training images are white on black in [0, 1], the others black on white in [0, 16]."""
    torch.manual_seed(seed)
    data = digits(seed)
    if fault:
        data = data._replace(X_val=16 * (1 - data.X_val))
    net = SmallCNN()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    return train(net, optimizer, nn.CrossEntropyLoss(), data, epochs=10, tell="all")


@case("CST208", dose="mild", data="tabular", net="mlp")
def another_hospital(seed: int, fault: bool = True) -> Diagnosis:
    """Validation rows were measured with other machines."""
    from castalia.diagnose import examine

    torch.manual_seed(seed)
    data = clouds(seed, n_train=500, classes=3)
    if fault:
        drift = 1.2 * torch.randn(10, generator=source(seed))
        stretch = torch.exp(0.5 * torch.randn(10, generator=source(seed + 1)))
        data = data._replace(X_val=data.X_val * stretch + drift)
    net, loss_fn = mlp(10, 48, 3), nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    _fit(net, optimizer, loss_fn, data, 15)
    scores.append(accuracy(net(data.X_val).detach(), data.y_val))
    return examine(net, loss_fn, (data.X, data.y), (data.X_val, data.y_val), optimizer=optimizer,
                   seconds=SECONDS)  # fmt: skip


def _fit(net, optimizer, loss_fn, data: Split, epochs: int) -> None:
    for _ in range(epochs):
        for x, y in batches(data.X, data.y, 32):
            optimizer.zero_grad()
            loss_fn(net(x), y).backward()
            optimizer.step()
