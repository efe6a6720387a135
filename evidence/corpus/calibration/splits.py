"""What is wrong between training and validation rows: CST206, CST207, CST208."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

from castalia.diagnose import watch
from evidence.corpus.calibration import _data as data
from evidence.corpus.calibration._twins import cured
from evidence.corpus.cases import case


def accuracy(out, y):
    return (out.argmax(1) == y).float().mean().item()


def fit(model, X, y, optimizer, criterion, epochs, size=32):
    for _ in range(epochs):
        model.train()
        for rows in torch.randperm(len(X)).split(size):
            optimizer.zero_grad()
            criterion(model(X[rows]), y[rows]).backward()
            optimizer.step()
        model.eval()
        yield


# ---- CST206, leakage: the validation score is better than it ought to be ----


@case("CST206", dose="severe", data="tabular", net="mlp")
@cured(shared=0.0)
def most_validation_rows_are_training_rows(seed, shared=0.8):
    # rare rows were drawn again and again before the split
    from castalia.diagnose import examine

    torch.manual_seed(seed)
    X, y, X_val, y_val = data.clusters(seed, classes=3, n=700, spread=3.0)
    k = int(shared * len(X_val))
    X_val, y_val = torch.cat([X[:k], X_val[k:]]), torch.cat([y[:k], y_val[k:]])
    model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 3))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in fit(model, X, y, optimizer, criterion, 25):
        pass
    return examine(
        model, criterion, (X, y), (X_val, y_val), optimizer=optimizer, seconds=data.SECONDS
    )


@case("CST206", dose="severe", data="tabular", net="mlp")
@cured(leak=False)
def column_written_after_the_outcome(seed, leak=True):
    from castalia.diagnose import examine

    torch.manual_seed(seed)
    X, y, X_val, y_val = data.friedman(seed, n=600, noise=5.0)
    if leak:  # the invoice that is written once the price is known
        X, X_val = (
            torch.cat([Z, t + 0.01 * torch.randn_like(t)], 1) for Z, t in ((X, y), (X_val, y_val))
        )
    model = nn.Sequential(nn.Linear(X.shape[1], 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=1e-4)
    for _ in fit(model, X, y, optimizer, F.mse_loss, 15):
        pass
    return examine(
        model,
        F.mse_loss,
        TensorDataset(X, y),
        TensorDataset(X_val, y_val),
        optimizer=optimizer,
        task="regression",
        seconds=data.SECONDS,
    )


@case("CST206", dose="severe", data="images", net="cnn")
@cured(shared=0.0)
def the_same_photographs_in_both_halves(seed, shared=0.8):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.digits(seed, n=500, images=True)
    X, X_val = X + 0.4 * torch.randn_like(X), X_val[:200] + 0.4 * torch.randn_like(X_val[:200])
    k = int(shared * 200)
    X_val, y_val = torch.cat([X[:k], X_val[k:]]), torch.cat([y[:k], y_val[k:200]])
    net = nn.Sequential(
        nn.Conv2d(1, 12, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(108, 10)
    )
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    doctor = watch(net, optimizer, criterion)
    for _ in fit(net, X, y, optimizer, criterion, 18):
        with torch.no_grad():
            out = net(X_val)
            doctor.epoch(criterion(out, y_val).item(), accuracy(out, y_val))
    return doctor.diagnosis()


@case("CST206", dose="mild", data="tabular", net="mlp")
@cured(leak=False)
def code_that_only_the_sick_are_given(seed, leak=True):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.clusters(seed, classes=2, n=700, spread=4.0)
    if leak:  # a treatment code, right but for one in fifty
        treated = (
            torch.where(torch.rand(len(t)) < 0.02, 1 - t, t).float()[:, None] * 2 - 1
            for t in (y, y_val)
        )
        X, X_val = (torch.cat([Z, t], 1) for Z, t in zip((X, X_val), treated, strict=True))
    model = nn.Sequential(nn.Linear(X.shape[1], 16), nn.ReLU(), nn.Linear(16, 1), nn.Flatten(0))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    doctor = watch(model, optimizer, task="binary")
    for _ in range(12):
        for rows in torch.randperm(len(X)).split(32):
            out = model(X[rows])
            loss = F.binary_cross_entropy_with_logits(out, y[rows].float())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss, outputs=out, targets=y[rows].float(), inputs=X[rows])
        with torch.no_grad():
            out = model(X_val)
            loss = F.binary_cross_entropy_with_logits(out, y_val.float())
            doctor.log(loss=loss, outputs=out, targets=y_val.float(), inputs=X_val)
            doctor.epoch(loss.item(), ((out > 0) == y_val).float().mean().item())
    return doctor.diagnosis()


# ---- CST207, too little data ----


@case("CST207", dose="severe", data="images", net="mlp")
@cured(n=1200)
def sixty_digits(seed, n=60):
    from castalia.diagnose import examine

    torch.manual_seed(seed)
    X, y, X_val, y_val = data.digits(seed, n=n)
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, weight_decay=1e-3)
    for _ in fit(model, X, y, optimizer, criterion, max(10, 4000 // n), 16):
        pass
    return examine(
        model, criterion, (X, y), (X_val, y_val), optimizer=optimizer, seconds=data.SECONDS
    )


@case("CST207", dose="mild", data="tabular", net="mlp")
@cured(n=1500)
def hundred_rows_of_a_curved_function(seed, n=100):
    from castalia.diagnose import examine

    torch.manual_seed(seed)
    X, y, X_val, y_val = data.friedman(seed, n=2200, noise=1.0)
    X, y = X[:n], y[:n]
    model = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=1e-3)
    for _ in fit(model, X, y, optimizer, F.mse_loss, max(10, 6000 // n), 20):
        pass
    return examine(
        model,
        F.mse_loss,
        TensorDataset(X, y),
        TensorDataset(X_val, y_val),
        optimizer=optimizer,
        task="regression",
        seconds=data.SECONDS,
    )


# Accepted as well, here and below: without the data in hand only the overfitting is to be seen.
@case("CST207", dose="severe", data="images", net="cnn", accept=("CST401",))
@cured(n=350)
def forty_images_of_bars(seed, n=40):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.bars(seed, n=600, noise=0.3)
    X, y = X[:n], y[:n]
    net = nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 3)
    )
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3, weight_decay=1e-3)
    doctor = watch(net, optimizer, criterion)
    for _ in fit(net, X, y, optimizer, criterion, max(20, 2400 // n), 20):
        with torch.no_grad():
            out = net(X_val)
            doctor.epoch(criterion(out, y_val).item(), accuracy(out, y_val))
    return doctor.diagnosis()


class WaveGRU(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(1, 16, batch_first=True)
        self.drop = nn.Dropout(0.2)
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        return self.head(self.drop(self.gru(x)[0][:, -1]))


@case("CST207", dose="severe", data="sequences", net="gru", accept=("CST401",))
@cured(n=320)
def two_dozen_sequences(seed, n=24):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.waves(seed, n=480)
    X, y = X[:n], y[:n]
    model = WaveGRU()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    doctor = watch(model, optimizer)
    for _ in range(60 if n < 100 else 12):
        model.train()
        for rows in torch.randperm(n).split(16):
            loss = F.cross_entropy(model(X[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss)
        model.eval()
        with torch.no_grad():
            out = model(X_val)
            doctor.epoch(F.cross_entropy(out, y_val).item(), accuracy(out, y_val))
    return doctor.diagnosis()


# ---- CST208, distribution shift ----


@case("CST208", dose="severe", data="images", net="cnn")
@cured(invert=False)
def validation_images_white_on_black(seed, invert=True):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.digits(seed, n=700, images=True)
    if invert:
        X_val = 1 - X_val
    net = nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 10)
    )
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    doctor = watch(net, optimizer, criterion)
    for _ in fit(net, X, y, optimizer, criterion, 10):
        with torch.no_grad():
            out = net(X_val)
            doctor.epoch(criterion(out, y_val).item(), accuracy(out, y_val))
    return doctor.diagnosis()


@case("CST208", dose="severe", data="tabular", net="mlp")
@cured(forgot=False)
def validation_rows_left_unscaled(seed, forgot=True):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.table("wine", seed, scaled=False)
    scaled = data.standardise(X, X_val)
    X, X_val = scaled[0], X_val if forgot else scaled[1]
    model = nn.Sequential(nn.Linear(13, 24), nn.ReLU(), nn.Linear(24, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    doctor = watch(model, optimizer)
    for _ in range(20):
        for xb, yb in DataLoader(TensorDataset(X, y), batch_size=16, shuffle=True):
            loss = F.cross_entropy(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss)
        with torch.no_grad():
            out = model(X_val)
            doctor.epoch(F.cross_entropy(out, y_val).item(), accuracy(out, y_val))
    return doctor.diagnosis()


@case("CST208", dose="severe", data="tabular", net="mlp")
@cured(by_column=False)
def split_along_a_column_of_curved_effect(seed, by_column=True):
    from castalia.diagnose import examine

    torch.manual_seed(seed)
    X, y, X_val, y_val = data.friedman(seed)
    X, y = torch.cat([X, X_val]), torch.cat([y, y_val])
    order = X[:, 2].argsort() if by_column else torch.randperm(len(X))
    train, late = order[:560], order[560:]
    train = train[torch.randperm(560)]
    model = nn.Sequential(nn.Linear(8, 48), nn.ReLU(), nn.Linear(48, 1))
    criterion = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in fit(model, X[train], y[train], optimizer, criterion, 20):
        pass
    return examine(
        model,
        criterion,
        (X[train], y[train]),
        (X[late], y[late]),
        optimizer=optimizer,
        seconds=data.SECONDS,
    )


@case("CST208", dose="mild", data="tabular", net="mlp")
@cured(drift=0.0)
def sensors_that_drifted_since(seed, drift=1.2):
    from castalia.diagnose import examine

    torch.manual_seed(seed)
    X, y, X_val, y_val = data.clusters(seed, classes=4, n=900)
    X_val = X_val + drift * torch.tensor([1.0, 0, -1, 0, 1, 0, -1, 0, 1, 0])
    model = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in fit(model, X, y, optimizer, F.cross_entropy, 12):
        pass
    return examine(
        model,
        F.cross_entropy,
        TensorDataset(X, y),
        TensorDataset(X_val, y_val),
        optimizer=optimizer,
        task="multiclass",
        seconds=data.SECONDS,
    )
