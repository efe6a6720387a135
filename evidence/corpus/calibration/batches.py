"""Batches of the wrong size, order or statistics, and curvature: CST113, CST114, CST115, CST209."""

import math

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


# ---- CST113, batches too small or too large ----


# Accepted as well: so few steps are made that more epochs would serve too.
@case("CST113", dose="severe", data="images", net="mlp", accept=("CST111",))
@cured(size=32)
def whole_data_set_as_one_batch(seed, size=1257):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.digits(seed)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    doctor = watch(model, optimizer, criterion)
    for _ in range(20):
        for rows in torch.randperm(len(X)).split(size):
            optimizer.zero_grad()
            criterion(model(X[rows]), y[rows]).backward()
            optimizer.step()
        with torch.no_grad():
            out = model(X_val)
            doctor.epoch(criterion(out, y_val).item(), accuracy(out, y_val))
    return doctor.diagnosis()


# Accepted as well: so few steps are made that more epochs would serve too.
@case("CST113", dose="mild", data="tabular", net="mlp", accept=("CST111",))
@cured(size=20)
def two_batches_an_epoch(seed, size=500):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.friedman(seed, n=1400)
    model = nn.Sequential(
        nn.Linear(8, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 1)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    doctor = watch(model, optimizer)
    for _ in range(15):
        for xb, yb in DataLoader(TensorDataset(X, y), batch_size=size, shuffle=True):
            loss = F.mse_loss(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss)
        with torch.no_grad():
            doctor.epoch(F.mse_loss(model(X_val), y_val).item())
    return doctor.diagnosis()


def _faint(seed, n=900, noise=3.0):
    """A target under four times its own variance of noise."""
    g = torch.Generator().manual_seed(seed)
    X = torch.randn(n, 20, generator=g)
    signal = 0.7 * X[:, :4].sum(1, keepdim=True)
    y = signal + noise * torch.randn(n, 1, generator=g)
    return X[:600], y[:600] / 3.3, X[600:], signal[600:] / 3.3


# Accepted as well: with one row a step, the noise that a rate lets through is a matter of the rate.
@case("CST113", dose="severe", data="tabular", net="mlp", accept=("CST101",))
@cured(size=64, epochs=40)
def one_noisy_row_a_step(seed, size=1, epochs=2):
    torch.manual_seed(seed)
    X, y, X_val, y_val = _faint(seed)
    model = nn.Sequential(nn.Linear(20, 32), nn.Tanh(), nn.Linear(32, 1))
    criterion = nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    doctor = watch(model, optimizer, criterion)
    for _ in range(epochs):
        for rows in torch.randperm(len(X)).split(size):
            optimizer.zero_grad()
            criterion(model(X[rows]), y[rows]).backward()
            optimizer.step()
        with torch.no_grad():
            doctor.epoch(criterion(model(X_val), y_val).item())
    return doctor.diagnosis()


# Accepted as well: a rate fit for 64 rows is too high for two.
@case("CST113", dose="severe", data="tabular", net="mlp", accept=("CST101",))
@cured(size=64, epochs=20)
def two_rows_of_overlapping_classes_a_step(seed, size=2, epochs=3):
    torch.manual_seed(seed)
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(2, (1000,), generator=g)
    X = torch.randn(1000, 16, generator=g) + 0.35 * (2 * y[:, None] - 1)  # at best 92 % are right
    X, y, X_val, y_val = X[:600], y[:600].float(), X[600:], y[600:].float()
    net = nn.Sequential(nn.Linear(16, 24), nn.Tanh(), nn.Linear(24, 1), nn.Flatten(0))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    doctor = watch(net, optimizer)
    for _ in range(epochs):
        for rows in torch.randperm(len(X)).split(size):
            loss = F.binary_cross_entropy_with_logits(net(X[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            out = net(X_val)
            score = ((out > 0) == y_val).float().mean().item()
            doctor.epoch(F.binary_cross_entropy_with_logits(out, y_val).item(), score)
    return doctor.diagnosis()


# ---- CST114, ill-conditioned ----


def _whiten(X, X_val):
    """Rotate and scale to uncorrelated columns of unit spread."""
    values, axes = torch.linalg.eigh(X.double().T @ X.double() / len(X))
    W = axes / values.clamp(min=1e-9).sqrt()
    return (X.double() @ W).float(), (X_val.double() @ W).float()


@case("CST114", dose="severe", data="tabular", net="linear")
@cured(white=True)
def powers_of_one_variable(seed, white=False):
    torch.manual_seed(seed)
    x = torch.linspace(-1, 1, 240)[torch.randperm(240)]
    y = torch.sin(5 * x)[:, None] * 1.4 + 0.05 * torch.randn(240, 1)
    powers = torch.stack([x**k for k in range(1, 10)], 1)
    X, X_val = data.standardise(powers[:180], powers[180:])
    if white:
        X, X_val = _whiten(X, X_val)
    model = nn.Linear(9, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.15)
    doctor = watch(model, optimizer)
    for _ in range(600):
        loss = F.mse_loss(model(X), y[:180])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        doctor.epoch(F.mse_loss(model(X_val), y[180:]).item())
    return doctor.diagnosis()


def _sensors(seed, n=900, own=0.03):
    """Sixteen sensors of one temperature; what matters is how they differ."""
    g = torch.Generator().manual_seed(seed)
    common = torch.randn(n, 1, generator=g)
    differences = torch.randn(n, 16, generator=g)
    X = common + own * differences
    y = (differences[:, 0] - differences[:, 1] + differences[:, 2] - differences[:, 3] > 0).long()
    return X[:600], y[:600], X[600:], y[600:]


@case("CST114", dose="severe", data="tabular", net="mlp")
@cured(white=True)
def sixteen_sensors_that_agree(seed, white=False):
    torch.manual_seed(seed)
    X, y, X_val, y_val = _sensors(seed)
    X, X_val = data.standardise(X, X_val)
    if white:
        X, X_val = _whiten(X, X_val)
    model = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 2))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    doctor = watch(model, optimizer, criterion)
    for _ in range(40):
        for rows in torch.randperm(len(X)).split(60):
            optimizer.zero_grad()
            criterion(model(X[rows]), y[rows]).backward()
            optimizer.step()
        with torch.no_grad():
            out = model(X_val)
            doctor.epoch(criterion(out, y_val).item(), accuracy(out, y_val))
    return doctor.diagnosis()


@case("CST114", dose="mild", data="sequences", net="linear")
@cured(white=True)
def lags_of_a_smooth_series(seed, white=False):
    torch.manual_seed(seed)
    t = torch.arange(700.0)
    series = sum(torch.sin(2 * math.pi * t / p + seed) for p in (37.0, 53.0, 91.0))
    series = series + 0.004 * torch.randn(700)
    windows = (series / series.std()).unfold(0, 13, 1)
    X, y = windows[:, :12], windows[:, 12:] - windows[:, 11:12]  # the next change
    scale = y[:480].std()
    X, X_val, y, y_val = X[:480], X[480:], y[:480] / scale, y[480:] / scale
    if white:
        X, X_val = _whiten(X, X_val)
    model = nn.Linear(12, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    doctor = watch(model, optimizer, task="regression")
    for _ in range(30):
        for rows in torch.randperm(len(X)).split(40):
            out = model(X[rows])
            loss = F.mse_loss(out, y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss, outputs=out, targets=y[rows])
        with torch.no_grad():
            doctor.epoch(F.mse_loss(model(X_val), y_val).item())
    return doctor.diagnosis()


# ---- CST115, batch statistics ----


class NormCNN(nn.Module):
    def __init__(self, norm):
        super().__init__()
        self.conv = nn.Conv2d(1, 12, 3)
        self.norm1 = norm(12)
        self.fc1 = nn.Linear(108, 32)
        self.norm2 = nn.BatchNorm1d(32) if norm is nn.BatchNorm2d else nn.LayerNorm(32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm1(self.conv(x))), 2).flatten(1)
        return self.fc2(F.relu(self.norm2(self.fc1(x))))


@case("CST115", dose="severe", data="images", net="cnn")
@cured(norm=lambda c: nn.GroupNorm(3, c))
def normalisation_over_two_images(seed, norm=nn.BatchNorm2d):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.digits(seed, n=600, images=True)
    net = NormCNN(norm)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    doctor = watch(net, optimizer, criterion)
    for _ in range(2):
        net.train()
        for rows in torch.randperm(len(X)).split(2):
            optimizer.zero_grad()
            criterion(net(X[rows]), y[rows]).backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            out = net(X_val)
            doctor.epoch(criterion(out, y_val).item(), accuracy(out, y_val))
    return doctor.diagnosis()


def norm_mlp(inputs, classes, momentum, width=32):
    return nn.Sequential(
        nn.Linear(inputs, width), nn.BatchNorm1d(width, momentum=momentum), nn.ReLU(),
        nn.Linear(width, width), nn.BatchNorm1d(width, momentum=momentum), nn.ReLU(),
        nn.Linear(width, classes),
    )  # fmt: skip


@case("CST115", dose="severe", data="images", net="batchnorm mlp")
@cured(momentum=0.1)
def running_statistics_that_never_arrive(seed, momentum=1e-4):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.digits(seed)
    model = norm_mlp(64, 10, momentum)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    doctor = watch(model, optimizer)
    for _ in range(8):
        model.train()
        for xb, yb in DataLoader(TensorDataset(X, y), batch_size=64, shuffle=True):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(xb), yb)
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss)
        model.eval()
        with torch.no_grad():
            out = model(X_val)
            doctor.epoch(F.cross_entropy(out, y_val).item(), accuracy(out, y_val))
    return doctor.diagnosis()


@case("CST115", dose="mild", data="tabular", net="batchnorm mlp")
@cured(momentum=0.01)
def momentum_of_another_library(seed, momentum=0.99):
    # elsewhere 0.99 means "keep nearly all"; here it means "keep the last small batch only"
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.clusters(seed, classes=5, n=600)
    model = norm_mlp(10, 5, momentum)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    doctor = watch(model, optimizer, criterion)
    for _ in range(7):
        model.train()
        for rows in torch.randperm(len(X)).split(5):
            optimizer.zero_grad()
            criterion(model(X[rows]), y[rows]).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            out = model(X_val)
            doctor.epoch(criterion(out, y_val).item(), accuracy(out, y_val))
    return doctor.diagnosis()


@case("CST115", dose="severe", data="tabular", net="batchnorm mlp")
@cured(norm=nn.LayerNorm)
def regression_normalised_over_three_rows(seed, norm=nn.BatchNorm1d):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.friedman(seed, n=600)
    model = nn.Sequential(
        nn.Linear(8, 32),
        norm(32),
        nn.Tanh(),
        nn.Linear(32, 32),
        norm(32),
        nn.Tanh(),
        nn.Linear(32, 1),
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    doctor = watch(model, optimizer)
    for _ in range(4):
        model.train()
        for rows in torch.randperm(len(X) // 3 * 3).split(3):
            loss = F.mse_loss(model(X[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            doctor.epoch(validation_loss=F.mse_loss(model(X_val), y_val).item())
    return doctor.diagnosis()


# ---- CST209, not shuffled ----


@case("CST209", dose="severe", data="images", net="mlp")
@cured(shuffle=True)
def digits_sorted_by_class(seed, shuffle=False):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.digits(seed)
    order = y.argsort()
    loader = DataLoader(TensorDataset(X[order], y[order]), batch_size=32, shuffle=shuffle)
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    doctor = watch(model, optimizer, criterion)
    for _ in range(12):
        for xb, yb in loader:
            optimizer.zero_grad()
            criterion(model(xb), yb).backward()
            optimizer.step()
        with torch.no_grad():
            out = model(X_val)
            doctor.epoch(criterion(out, y_val).item(), accuracy(out, y_val))
    return doctor.diagnosis()


@case("CST209", dose="mild", data="tabular", net="mlp")
@cured(shuffle=True)
def regression_sorted_by_target(seed, shuffle=False):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.friedman(seed)
    order = y[:, 0].argsort()
    model = nn.Sequential(nn.Linear(8, 48), nn.ReLU(), nn.Linear(48, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
    doctor = watch(model, optimizer, task="regression")
    for _ in range(10):
        if shuffle:
            order = torch.randperm(len(X))
        for rows in order.split(28):
            pred = model(X[rows])
            loss = F.mse_loss(pred, y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss, outputs=pred, targets=y[rows])
        with torch.no_grad():
            doctor.epoch(F.mse_loss(model(X_val), y_val).item())
    return doctor.diagnosis()


@case("CST209", dose="severe", data="images", net="cnn")
@cured(shuffle=True)
def folder_after_folder_of_images(seed, shuffle=False):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.digits(seed, n=800, images=True)
    keep, keep_val = y < 4, y_val < 4
    X, y, X_val, y_val = X[keep], y[keep], X_val[keep_val], y_val[keep_val]
    order = y.argsort()
    net = nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 4)
    )
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    doctor = watch(net, optimizer)
    for _ in range(12):
        if shuffle:
            order = torch.randperm(len(X))
        for rows in order.split(16):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(X[rows]), y[rows])
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            doctor.epoch(validation_score=accuracy(net(X_val), y_val))
    return doctor.diagnosis()


class GRUClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(1, 20, batch_first=True)
        self.head = nn.Linear(20, 3)

    def forward(self, x):
        return self.head(self.gru(x)[1][-1])


@case("CST209", dose="severe", data="sequences", net="gru")
@cured(shuffle=True)
def one_frequency_after_the_other(seed, shuffle=False):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.waves(seed)
    order = y.argsort(stable=True)
    X, y = X[order], y[order]
    model = GRUClassifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    doctor = watch(model, optimizer)
    for _ in range(8):
        for xb, yb in DataLoader(TensorDataset(X, y), batch_size=20, shuffle=shuffle):
            out = model(xb)
            loss = F.cross_entropy(out, yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss)
        with torch.no_grad():
            out = model(X_val)
            doctor.epoch(F.cross_entropy(out, y_val).item(), accuracy(out, y_val))
    return doctor.diagnosis()
