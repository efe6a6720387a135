"""Inputs and targets in their own units, and columns that say nothing: CST201, 202, 203."""

import torch
import torch.nn.functional as F
from torch import nn

from castalia.diagnose import Diagnosis
from evidence.corpus.cases import case
from evidence.corpus.styles._data import arms, orders, passengers, rng, sensors, z
from evidence.corpus.styles._loops import SECONDS, Carla, anna, ben, explained, scores
from evidence.corpus.styles._nets import SensorRNN, dense


@case("CST201", dose="severe", data="series", net="gru", accept=("CST107",))
def air_pressure_beside_two_ratios(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    X, y, X_val, y_val = sensors(seed)
    if fault:
        X, X_val = X.clone(), X_val.clone()
        for part in (X, X_val):
            part[..., 2] = 1013 + 8 * part[..., 2]
    net = SensorRNN(nn.GRU)
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    return anna(net, opt, nn.MSELoss(), (X, y, X_val, y_val), 10, score=explained)


@case("CST201", dose="severe", data="tabular", net="mlp")
def years_and_square_metres(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    X, y, X_val, y_val = orders(seed)
    if fault:
        scale, shift = torch.ones(12), torch.zeros(12)
        scale[1], shift[1] = 12.0, 1985.0
        scale[3], shift[3] = 300.0, 1200.0
        X, X_val = scale * X + shift, scale * X_val + shift
    net = dense(12, 48, 24, 1)
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    return ben(net, opt, F.mse_loss, (X, y, X_val, y_val), 20, score=explained)


@case("CST201", dose="severe", data="series", net="conv1d")
def sound_as_sixteen_bit_numbers(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    g = rng(seed)
    y = torch.randint(3, (800,), generator=g)
    t, phase = torch.arange(40) / 40, torch.rand(800, 1, generator=g)
    X = torch.sin(2 * torch.pi * ((3 + 3 * y[:, None]) * t + phase))
    X = (X + 0.3 * torch.randn(800, 40, generator=g))[:, None] * (9000.0 if fault else 1.0)
    net = nn.Sequential(nn.Conv1d(1, 12, 7), nn.ReLU(), nn.Conv1d(12, 12, 5), nn.ReLU(),
                        nn.AdaptiveMaxPool1d(2), nn.Flatten(), nn.Linear(24, 3))  # fmt: skip
    opt = torch.optim.SGD(net.parameters(), lr=0.05)
    return Carla(net, opt, nn.CrossEntropyLoss()).fit((X[:500], y[:500], X[500:], y[500:]), 10)


@case("CST202", dose="severe", data="series", net="lstm")
def passengers_by_the_hundred(seed: int, fault: bool = True) -> Diagnosis:
    """The windows were scaled, the next month was not."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = passengers(seed)
    X, X_val = (X - 330) / 90, (X_val - 330) / 90
    if not fault:
        y, y_val = z(y, y_val)
    net = SensorRNN(channels=1)
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    return anna(net, opt, nn.MSELoss(), (X, y, X_val, y_val), 25, size=20, score=explained)


@case("CST202", dose="mild", data="tabular", net="mlp")
def one_hand_in_metres_one_in_millimetres(seed: int, fault: bool = True) -> Diagnosis:
    """Of two outputs the one in millimetres gets all the attention."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = arms(seed)
    unit = torch.tensor([1.0, 1000.0]) if fault else torch.ones(2)
    net = dense(4, 48, 48, 2)
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)

    def each(out: torch.Tensor, target: torch.Tensor) -> float:
        return (explained(out[:, :1], target[:, :1]) + explained(out[:, 1:], target[:, 1:])) / 2

    data = X, y * unit, X_val, y_val * unit
    return Carla(net, opt, nn.MSELoss(), each).fit(data, 20)


@case("CST203", dose="mild", data="tabular", net="mlp")
def a_sensor_that_was_never_plugged_in(seed: int, fault: bool = True) -> Diagnosis:
    """Two of the columns are constant: nothing is lost, and nothing is measured."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = orders(seed)
    if fault:
        X, X_val = X.clone(), X_val.clone()
        for part in (X, X_val):
            part[:, [2, 7]] = torch.tensor([1.0, -1.0])
    net = dense(12, 32, 1)
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    return anna(net, opt, nn.MSELoss(), (X, y, X_val, y_val), 15, score=explained)


@case("CST203", dose="mild", data="tabular", net="mlp")
def the_same_column_under_two_names(seed: int, fault: bool = True) -> Diagnosis:
    from castalia.diagnose import examine

    torch.manual_seed(seed)
    X, y, X_val, y_val = orders(seed)
    if fault:
        X[:, 9], X_val[:, 9] = X[:, 0], X_val[:, 0]
        X[:, 10], X_val[:, 10] = X[:, 3], X_val[:, 3]
    net, loss_fn = dense(12, 32, 1), nn.MSELoss()
    opt = torch.optim.Adam(net.parameters(), lr=5e-3, weight_decay=1e-3)
    for _ in range(15):
        for rows in torch.randperm(len(X)).split(32):
            opt.zero_grad()
            loss_fn(net(X[rows]), y[rows]).backward()
            opt.step()
    scores.append(explained(net(X_val).detach(), y_val))
    return examine(net, loss_fn, (X, y), (X_val, y_val), optimizer=opt, seconds=SECONDS)
