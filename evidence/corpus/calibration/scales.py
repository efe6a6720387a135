"""Columns and targets on the wrong scale, and columns that are none: CST201, CST202, CST203."""

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


# ---- CST201, inputs not scaled ----


@case("CST201", dose="severe", data="tabular", net="mlp")
@cured(scaled=True)
def wine_as_it_comes(seed, scaled=False):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.table("wine", seed, scaled=scaled)
    model = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, 3))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    doctor = watch(model, optimizer, criterion)
    for _ in range(40):
        for rows in torch.randperm(len(X)).split(16):
            optimizer.zero_grad()
            criterion(model(X[rows]), y[rows]).backward()
            optimizer.step()
        with torch.no_grad():
            out = model(X_val)
            doctor.epoch(criterion(out, y_val).item(), accuracy(out, y_val))
    return doctor.diagnosis()


class TumourNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(30, 24), nn.Linear(24, 12), nn.Linear(12, 1)

    def forward(self, x):
        x = torch.tanh(self.fc1(x))
        x = torch.tanh(self.fc2(x))
        return torch.sigmoid(self.fc3(x))


@case("CST201", dose="severe", data="tabular", net="mlp")
@cured(scaled=True)
def tumours_in_their_own_units(seed, scaled=False):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.table("breast_cancer", seed, scaled=scaled)
    y, y_val = y.float()[:, None], y_val.float()[:, None]
    net = TumourNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    doctor = watch(net, optimizer)
    for _ in range(30):
        for xb, yb in DataLoader(TensorDataset(X, y), batch_size=32, shuffle=True):
            loss = F.binary_cross_entropy(net(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss)
        with torch.no_grad():
            p = net(X_val)
            score = ((p > 0.5) == y_val).float().mean().item()
            doctor.epoch(F.binary_cross_entropy(p, y_val).item(), score)
    return doctor.diagnosis()


@case("CST201", dose="severe", data="images", net="cnn")
@cured(scale=1 / 16)
def pixels_from_0_to_255(seed, scale=255 / 16):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.digits(seed, n=800, images=True, scale=scale)
    net = nn.Sequential(
        nn.Conv2d(1, 8, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(72, 32),
        nn.ReLU(),
        nn.Linear(32, 10),
    )
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    doctor = watch(net, optimizer, criterion)
    for _ in range(10):
        for rows in torch.randperm(len(X)).split(32):
            optimizer.zero_grad()
            criterion(net(X[rows]), y[rows]).backward()
            optimizer.step()
        with torch.no_grad():
            out = net(X_val)
            doctor.epoch(criterion(out, y_val).item(), accuracy(out, y_val))
    return doctor.diagnosis()


@case("CST201", dose="mild", data="tabular", net="mlp")
@cured(unit=1.0)
def one_column_in_grams_not_kilograms(seed, unit=1000.0):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.friedman(seed)
    units = torch.ones(8)
    units[6] = unit  # a column that does not matter drowns those that do
    X, X_val = X * units, X_val * units
    model = nn.Sequential(
        nn.Linear(8, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    doctor = watch(model, optimizer, task="regression")
    for _ in range(30):
        for rows in torch.randperm(len(X)).split(40):
            pred = model(X[rows])
            loss = F.mse_loss(pred, y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss, outputs=pred, targets=y[rows])
        with torch.no_grad():
            doctor.epoch(F.mse_loss(model(X_val), y_val).item())
    return doctor.diagnosis()


class KelvinLSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(1, 20, batch_first=True)
        self.head = nn.Linear(20, 3)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


@case("CST201", dose="severe", data="sequences", net="lstm")
@cured(offset=0.0, scale=1.0)
def temperatures_in_kelvin(seed, offset=290.0, scale=12.0):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.waves(seed)
    X, X_val = offset + scale * X, offset + scale * X_val
    model = KelvinLSTM()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    doctor = watch(model, optimizer)
    for _ in range(14):
        for rows in torch.randperm(len(X)).split(28):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(X[rows]), y[rows])
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            doctor.epoch(validation_score=accuracy(model(X_val), y_val))
    return doctor.diagnosis()


# ---- CST202, targets not scaled ----


def fit_regression(model, optimizer, X, y, X_val, y_val, doctor, epochs, size, log=True):
    for _ in range(epochs):
        for rows in torch.randperm(len(X)).split(size):
            pred = model(X[rows])
            loss = F.mse_loss(pred, y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if log:
                doctor.log(loss=loss, outputs=pred, targets=y[rows])
        with torch.no_grad():
            pred = model(X_val)
            r2 = 1 - ((pred - y_val) ** 2).sum() / ((y_val - y_val.mean()) ** 2).sum()
            doctor.epoch(F.mse_loss(pred, y_val).item(), r2.item())


@case("CST202", dose="severe", data="tabular", net="mlp")
@cured(unit=1.0, base=0.0)
def prices_in_dollars(seed, unit=80_000.0, base=200_000.0):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.friedman(seed)
    y, y_val = base + unit * y, base + unit * y_val
    model = nn.Sequential(
        nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    doctor = watch(model, optimizer)
    fit_regression(model, optimizer, X, y, X_val, y_val, doctor, 30, 40)
    return doctor.diagnosis()


@case("CST202", dose="severe", data="tabular", net="mlp")
@cured(scaled=True)
def disease_progression_as_recorded(seed, scaled=False):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.table("diabetes", seed)
    if not scaled:  # back to the recorded numbers, 25 to 346
        y, y_val = 152 + 77 * y, 152 + 77 * y_val
    y, y_val = y[:, None], y_val[:, None]
    model = nn.Sequential(nn.Linear(10, 24), nn.Tanh(), nn.Linear(24, 1))
    criterion = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    doctor = watch(model, optimizer, criterion)
    for _ in range(40):
        for xb, yb in DataLoader(TensorDataset(X, y), batch_size=32, shuffle=True):
            optimizer.zero_grad()
            criterion(model(xb), yb).backward()
            optimizer.step()
        with torch.no_grad():
            pred = model(X_val)
            r2 = 1 - criterion(pred, y_val) / y_val.var()
            doctor.epoch(criterion(pred, y_val).item(), r2.item())
    return doctor.diagnosis()


@case("CST202", dose="mild", data="tabular", net="mlp")
@cured(unit=1.0, base=0.0)
def temperatures_in_fahrenheit(seed, unit=15.0, base=60.0):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.friedman(seed)
    y, y_val = base + unit * y, base + unit * y_val
    model = nn.Sequential(
        nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    doctor = watch(model, optimizer)
    fit_regression(model, optimizer, X, y, X_val, y_val, doctor, 25, 40, log=False)
    return doctor.diagnosis()


class PriceGRU(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(1, 24, batch_first=True)
        self.out = nn.Linear(24, 1)

    def forward(self, x):
        return self.out(self.gru(x)[0][:, -1])


@case("CST202", dose="severe", data="sequences", net="gru")
@cured(unit=1.0, base=0.0)
def series_predicted_in_thousands(seed, unit=400.0, base=5000.0):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.echoes(seed, lag=2)
    y, y_val = base + unit * y, base + unit * y_val
    model = PriceGRU()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=5e-3)
    doctor = watch(model, optimizer)
    fit_regression(model, optimizer, X, y, X_val, y_val, doctor, 16, 40, log=False)
    return doctor.diagnosis()


@case("CST202", dose="severe", data="tabular", net="mlp")
@cured(unit=1.0)
def conductances_in_siemens(seed, unit=1e-4):
    # the loss looks small from the start; the outputs begin a thousand times too large
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.friedman(seed)
    y, y_val = unit * y, unit * y_val
    model = nn.Sequential(nn.Linear(8, 48), nn.Tanh(), nn.Linear(48, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    doctor = watch(model, optimizer, task="regression")
    fit_regression(model, optimizer, X, y, X_val, y_val, doctor, 30, 40)
    return doctor.diagnosis()


@case("CST202", dose="severe", data="tabular", net="mlp")
@cured(unit=1.0)
def plain_descent_on_targets_of_hundreds(seed, unit=300.0):
    # the squared error of hundreds throws the weights far away in one step
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.friedman(seed)
    y, y_val = unit * y, unit * y_val
    model = nn.Sequential(nn.Linear(8, 48), nn.ReLU(), nn.Linear(48, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03)
    doctor = watch(model, optimizer)
    fit_regression(model, optimizer, X, y, X_val, y_val, doctor, 30, 40)
    return doctor.diagnosis()


# ---- CST203, columns that are none ----


# Accepted as well: the values missing from the table are where every NaN comes from.
@case("CST203", dose="severe", data="tabular", net="mlp", accept=("CST105",))
@cured(missing=0.0)
def values_missing_from_three_columns(seed, missing=0.1):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.table("wine", seed)
    holes = torch.rand(len(X), 3, generator=torch.Generator().manual_seed(seed)) < missing
    X[:, 4:7] = X[:, 4:7].masked_fill(holes, float("nan"))
    model = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, 3))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    doctor = watch(model, optimizer, criterion)
    for _ in range(20):
        for rows in torch.randperm(len(X)).split(16):
            optimizer.zero_grad()
            criterion(model(X[rows]), y[rows]).backward()
            optimizer.step()
        with torch.no_grad():
            out = model(X_val)
            doctor.epoch(criterion(out, y_val).item(), accuracy(out, y_val))
    return doctor.diagnosis()


# Accepted as well: the constant column, divided by its own spread, is NaN at the input.
@case("CST203", dose="severe", data="tabular", net="mlp", accept=("CST105",))
@cured(drop=True)
def constant_column_divided_by_its_spread(seed, drop=False):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.table("breast_cancer", seed, scaled=False)
    if not drop:
        X, X_val = (torch.cat([Z, torch.full((len(Z), 1), 3.0)], 1) for Z in (X, X_val))
    mean, std = X.mean(0), X.std(0)
    X, X_val = (X - mean) / std, (X_val - mean) / std
    model = nn.Sequential(nn.Linear(X.shape[1], 16), nn.ReLU(), nn.Linear(16, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    doctor = watch(model, optimizer)
    for _ in range(15):
        for rows in torch.randperm(len(X)).split(40):
            loss = F.cross_entropy(model(X[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss)
        with torch.no_grad():
            doctor.epoch(validation_score=accuracy(model(X_val), y_val))
    return doctor.diagnosis()


# Accepted as well: the row number of a sorted table is a leak.
@case("CST203", dose="severe", data="tabular", net="mlp", accept=("CST206",))
@cured(number=False)
def row_number_left_in_a_sorted_table(seed, number=True):
    # validation rows were numbered again, so what was learnt from the number is wrong for them
    from castalia.diagnose import examine

    torch.manual_seed(seed)
    X, y, X_val, y_val = data.clusters(seed, classes=3, n=600, spread=3.0)
    if number:
        ranks = torch.arange(len(X), dtype=torch.float32) / len(X)
        order = y.argsort(stable=True)
        X, y = torch.cat([X[order], 3.4 * (ranks[:, None] - 0.5)], 1), y[order]
        new = torch.randperm(len(X_val)).float()[:, None] / len(X_val)
        X_val = torch.cat([X_val, 3.4 * (new - 0.5)], 1)
    model = nn.Sequential(nn.Linear(X.shape[1], 32), nn.ReLU(), nn.Linear(32, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(25):
        for rows in torch.randperm(len(X)).split(32):
            optimizer.zero_grad()
            F.cross_entropy(model(X[rows]), y[rows]).backward()
            optimizer.step()
    return examine(
        model,
        nn.CrossEntropyLoss(),
        (X, y),
        (X_val, y_val),
        optimizer=optimizer,
        seconds=data.SECONDS,
    )


@case("CST203", dose="mild", data="tabular", net="mlp")
@cured(copies=0)
def one_column_forty_times(seed, copies=40):
    # a join that went wrong: forty copies of a column that does not matter
    from castalia.diagnose import examine

    torch.manual_seed(seed)
    X, y, X_val, y_val = data.friedman(seed, n=600)
    X, X_val = (torch.cat([Z, Z[:, 7:].repeat(1, copies)], 1) for Z in (X, X_val))
    model = nn.Sequential(nn.Linear(X.shape[1], 32), nn.Tanh(), nn.Linear(32, 1))
    loss_fn = nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    for _ in range(25):
        for rows in torch.randperm(len(X)).split(20):
            optimizer.zero_grad()
            loss_fn(model(X[rows]), y[rows]).backward()
            optimizer.step()
    train, validation = TensorDataset(X, y), TensorDataset(X_val, y_val)
    return examine(
        model,
        loss_fn,
        train,
        validation,
        optimizer=optimizer,
        task="regression",
        seconds=data.SECONDS,
    )


# Accepted as well: a code of -999 for "missing" also puts its columns on another scale.
@case("CST203", dose="severe", data="tabular", net="mlp", accept=("CST201",))
@cured(code=0.0)
def missing_values_coded_as_minus_999(seed, code=-999.0):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.clusters(seed, classes=4, n=900)
    g = torch.Generator().manual_seed(seed)
    X, X_val = (
        torch.where((torch.rand(Z.shape, generator=g) < 0.08) & (torch.arange(10) < 5), code, Z)
        for Z in (X, X_val)
    )
    model = nn.Sequential(
        nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4)
    )
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    doctor = watch(model, optimizer, criterion)
    for _ in range(25):
        for xb, yb in DataLoader(TensorDataset(X, y), batch_size=32, shuffle=True):
            optimizer.zero_grad()
            criterion(model(xb), yb).backward()
            optimizer.step()
        with torch.no_grad():
            out = model(X_val)
            doctor.epoch(criterion(out, y_val).item(), accuracy(out, y_val))
    return doctor.diagnosis()
