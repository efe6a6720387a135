"""Batches too small, too large, in order, or of features alike: CST113, 114, 115, 209."""

import torch
import torch.nn.functional as F
from torch import nn

from castalia.diagnose import Diagnosis
from evidence.corpus.cases import case
from evidence.corpus.styles._data import (
    commands,
    digit_images,
    orders,
    properties,
    rng,
    sensors,
)
from evidence.corpus.styles._loops import Carla, anna, ben, explained
from evidence.corpus.styles._nets import ConvNet, TextRNN, dense


@case("CST113", dose="severe", data="tabular", net="mlp")
def one_noisy_order_a_step(seed: int, fault: bool = True) -> Diagnosis:
    """Batches of one row, and targets that are mostly noise."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = orders(seed, n=400)
    noisy = y + 1.0 * torch.randn(y.shape, generator=rng(seed))
    net = dense(12, 48, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.02)
    size, epochs = (1, 2) if fault else (32, 15)
    return ben(net, opt, F.mse_loss, (X, noisy, X_val, y_val), epochs, bs=size, score=explained)


@case("CST113", dose="severe", data="images", net="cnn")
def the_whole_data_set_in_a_batch(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = ConvNet()
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    return anna(net, opt, nn.CrossEntropyLoss(), digit_images(seed), 8, size=900 if fault else 32)


@case("CST114", dose="severe", data="tabular", net="linear")
def overlapping_bumps(seed: int, fault: bool = True) -> Diagnosis:
    """Twenty radial functions so wide that they are nearly one."""
    torch.manual_seed(seed)
    x = torch.rand(700, 1, generator=rng(seed))
    y = torch.sin(20 * x) + 0.1 * torch.randn(700, 1, generator=rng(seed + 1))
    X = torch.exp(-(((x - torch.linspace(0, 1, 20)) / 0.2) ** 2))
    X = (X - X[:500].mean(0)) / X[:500].std(0)
    if not fault:  # the same space with independent axes
        _, s, v = torch.linalg.svd(X[:500], full_matrices=False)
        X = (X @ v.T / s * 500**0.5)[:, :10]
    net = nn.Linear(X.shape[1], 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.03)
    data = X[:500], y[:500], X[500:], y[500:]
    return Carla(net, opt, nn.MSELoss(), explained).fit(data, 20, batch=50)


@case("CST115", dose="severe", data="tabular", net="mlp")
def batch_normalisation_of_two_rows(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(64, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Linear(48, 24),
                        nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 4))  # fmt: skip
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    size, epochs = (2, 1) if fault else (30, 8)
    return anna(net, opt, nn.BCEWithLogitsLoss(), properties(seed), epochs, size=size)


@case("CST115", dose="severe", data="series", net="conv1d")
def running_means_that_stand_still(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    X, y, X_val, y_val = sensors(seed)
    data = (4 + 3 * X).transpose(1, 2), y, (4 + 3 * X_val).transpose(1, 2), y_val
    m = 1e-4 if fault else 0.1
    net = nn.Sequential(nn.BatchNorm1d(3, momentum=m), nn.Conv1d(3, 16, 3),
                        nn.BatchNorm1d(16, momentum=m), nn.ReLU(), nn.Flatten(),
                        nn.Linear(128, 1))  # fmt: skip
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    return Carla(net, opt, nn.MSELoss(), explained).fit(data, 10)


@case("CST209", dose="severe", data="images", net="cnn")
def one_digit_after_the_other(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    X, y, X_val, y_val = digit_images(seed)
    order = y.argsort()
    net = ConvNet()
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    data = X[order], y[order], X_val, y_val
    return anna(net, opt, nn.CrossEntropyLoss(), data, 6, shuffle=not fault)


@case("CST209", dose="severe", data="tokens", net="gru")
def commands_in_folders(seed: int, fault: bool = True) -> Diagnosis:
    """Files were read folder by folder, and a folder is a class."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = commands(seed)
    order = y.argsort(stable=True)
    net = TextRNN()
    opt = torch.optim.SGD(net.parameters(), lr=0.3, momentum=0.9)
    data = X[order], y[order], X_val, y_val
    return Carla(net, opt, nn.CrossEntropyLoss()).fit(data, 8, shuffle=not fault)
