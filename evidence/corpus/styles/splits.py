"""What training and validation share, or do not: CST206, 207, 208."""

import torch
import torch.nn.functional as F
from torch import nn

from castalia.diagnose import Diagnosis
from evidence.corpus.cases import case
from evidence.corpus.styles._data import (
    Split,
    commands,
    digit_images,
    orders,
    rng,
    sensors,
    z,
)
from evidence.corpus.styles._loops import (
    SECONDS,
    Carla,
    anna,
    ben,
    explained,
    right,
    scores,
)
from evidence.corpus.styles._nets import ConvNet, SensorRNN, TextRNN, dense


def _fit(net, opt, loss_fn, data: Split, epochs: int) -> None:
    X, y, *_ = data
    for _ in range(epochs):
        for rows in torch.randperm(len(X)).split(32):
            opt.zero_grad()
            loss_fn(net(X[rows]), y[rows]).backward()
            opt.step()


@case("CST206", dose="severe", data="images", net="cnn")
def images_doubled_before_the_split(seed: int, fault: bool = True) -> Diagnosis:
    """Half of the validation images are training images."""
    from castalia.diagnose import examine

    torch.manual_seed(seed)
    X, y, X_val, y_val = digit_images(seed, n=300)
    fresh = X_val, y_val
    if fault:
        X_val = torch.cat([X_val[:150], X[:150]])
        y_val = torch.cat([y_val[:150], y[:150]])
    net, loss_fn = ConvNet(), nn.CrossEntropyLoss()
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    _fit(net, opt, loss_fn, (X, y, X_val, y_val), 15)
    with torch.no_grad():  # what the validation promises beyond what fresh images give
        scores.append(1 - right(net(X_val), y_val) + right(net(fresh[0]), fresh[1]))
    return examine(net, loss_fn, (X, y), (X_val, y_val), optimizer=opt, seconds=SECONDS)


@case("CST206", dose="severe", data="tabular", net="mlp")
def a_column_that_is_the_target(seed: int, fault: bool = True) -> Diagnosis:
    """The invoice's total among the columns from which the total is to be foretold."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = orders(seed)
    honest = X_val
    if fault:
        X, X_val = X.clone(), X_val.clone()
        X[:, 6], X_val[:, 6] = y[:, 0], y_val[:, 0]
    net = dense(12, 48, 1)
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    found = Carla(net, opt, nn.MSELoss(), explained).fit((X, y, X_val, y_val), 15)
    scores.append(explained(net(honest).detach(), y_val))  # in use, the total is not there
    return found


@case("CST206", dose="mild", data="images", net="cnn")
def validated_on_the_training_images(seed: int, fault: bool = True) -> Diagnosis:
    """The validation set is the first part of the training set."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = digit_images(seed)
    net = ConvNet()
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    data = (X, y, X[:300], y[:300]) if fault else (X, y, X_val, y_val)
    return anna(net, opt, nn.CrossEntropyLoss(), data, 10)


@case("CST207", dose="severe", data="series", net="gru", accept=("CST401",))
def forty_sequences(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    X, y, X_val, y_val = sensors(seed)
    n, epochs = (40, 60) if fault else (600, 15)
    net = SensorRNN(nn.GRU)
    opt = torch.optim.Adam(net.parameters(), lr=0.01)
    return anna(net, opt, nn.MSELoss(), (X[:n], y[:n], X_val, y_val), epochs, 20, score=explained)


@case("CST207", dose="severe", data="images", net="cnn", accept=("CST401",))
def seventy_images(seed: int, fault: bool = True) -> Diagnosis:
    from castalia.diagnose import examine

    torch.manual_seed(seed)
    X, y, X_val, y_val = digit_images(seed)
    n, epochs = (50, 30) if fault else (900, 8)
    net, loss_fn = ConvNet(), nn.CrossEntropyLoss()
    opt = torch.optim.Adam(net.parameters(), lr=5e-3, weight_decay=1e-3)
    data = X[:n], y[:n], X_val, y_val
    _fit(net, opt, loss_fn, data, epochs)
    scores.append(right(net(X_val).detach(), y_val))
    return examine(net, loss_fn, data[:2], data[2:], optimizer=opt, seconds=SECONDS)


@case("CST208", dose="severe", data="images", net="cnn")
def the_new_camera_mirrors(seed: int, fault: bool = True) -> Diagnosis:
    from castalia.diagnose import examine

    torch.manual_seed(seed)
    X, y, X_val, y_val = digit_images(seed)
    if fault:
        X_val = X_val.flip(3)
    net, loss_fn = ConvNet(), nn.CrossEntropyLoss()
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    _fit(net, opt, loss_fn, (X, y, X_val, y_val), 10)
    scores.append(right(net(X_val).detach(), y_val))
    return examine(net, loss_fn, (X, y), (X_val, y_val), optimizer=opt, seconds=SECONDS)


@case("CST208", dose="severe", data="tabular", net="mlp")
def next_year_is_another_market(seed: int, fault: bool = True) -> Diagnosis:
    """Training rows are from the old years; all columns have drifted since."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = orders(seed, n=600)
    if fault:
        drift = 1.5 * torch.randn(12, generator=rng(seed))
        X_val = 1.8 * X_val + drift
    net = dense(12, 48, 1)
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    return Carla(net, opt, nn.MSELoss(), explained).fit((X, y, X_val, y_val), 20)


@case("CST208", dose="severe", data="tokens", net="gru")
def another_tokenizer_for_validation(seed: int, fault: bool = True) -> Diagnosis:
    """The vocabulary was built a second time, and its words got other numbers."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = commands(seed)
    X, X_val = X // 2 * 2 + 1, X_val // 2 * 2 + 1  # half of the numbers are never used
    X, y = X[y % 2 == 0], y[y % 2 == 0] // 2
    X_val, y_val = X_val[y_val % 2 == 0], y_val[y_val % 2 == 0] // 2
    if fault:
        X_val = (X_val + 9) % 40
    net = TextRNN(out=2)
    opt = torch.optim.Adam(net.parameters(), lr=0.01)
    return ben(net, opt, F.cross_entropy, (X, y, X_val, y_val), 10)


@case("CST208", dose="mild", data="series", net="lstm")
def validation_scaled_by_itself(seed: int, fault: bool = True) -> Diagnosis:
    """Each part was standardised with its own numbers, and the parts differ."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = sensors(seed)
    if fault:
        X_val = X_val[:60] * torch.tensor([0.3, 3.0, 1.0]) + torch.tensor([1.5, -1.0, 0.5])
        y_val = y_val[:60]
    else:
        X, X_val = z(X, X_val)
    net = SensorRNN()
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    return anna(net, opt, nn.MSELoss(), (X, y, X_val, y_val), 12, score=explained)
