"""Rates, batches and epochs that do not fit: CST101, 102, 111, 113, 114."""

import torch
import torch.nn.functional as F
from torch import nn

from castalia.diagnose import Diagnosis, watch
from evidence.corpus.cases import case
from evidence.corpus.exercises._data import (
    Split,
    digits,
    friedman,
    houses,
    reviews,
    source,
    split,
    standardised,
    waves,
)
from evidence.corpus.exercises._loops import batches, r2, train, verdict
from evidence.corpus.exercises._nets import Recurrent, SmallCNN, TextTransformer, mlp


@case("CST101", dose="severe", data="images", net="cnn")
def learning_rate_one(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = SmallCNN()
    optimizer = torch.optim.SGD(net.parameters(), lr=1.0 if fault else 0.02, momentum=0.9)
    return train(net, optimizer, nn.CrossEntropyLoss(), digits(seed), epochs=10, tell="module")


@case("CST101", dose="severe", data="text", net="transformer")
def a_transformer_at_the_rate_of_a_perceptron(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = TextTransformer(60, 2, depth=2)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.3 if fault else 2e-3)
    return train(net, optimizer, F.cross_entropy, reviews(seed), epochs=5, tell="nothing")


@case("CST101", dose="mild", data="tabular", net="mlp")
def regression_that_never_settles(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = mlp(8, 64, 64, 1)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.2 if fault else 5e-3)
    data = friedman(seed)
    return train(net, optimizer, F.mse_loss, data, epochs=20, score=r2, report="loss")


@case("CST102", dose="severe", data="series", net="lstm")
def adam_at_a_millionth(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = Recurrent(nn.LSTM, 1, 24, 3)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-6 if fault else 0.02)
    data = waves(seed, n_train=300, length=20)
    return train(net, optimizer, nn.CrossEntropyLoss(), data, epochs=15, tell="all")


@case("CST102", dose="mild", data="images", net="mlp")
def descent_in_tiny_steps(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = mlp(64, 64, 10)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3 if fault else 0.1)
    data = digits(seed, flat=True)
    return train(net, optimizer, F.cross_entropy, data, epochs=20, report="score")


@case("CST111", dose="severe", data="images", net="mlp")
def two_epochs_of_digits(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = mlp(64, 48, 10)
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    data, epochs = digits(seed, flat=True), 2 if fault else 20
    return train(net, optimizer, nn.CrossEntropyLoss(), data, epochs=epochs, tell="module")


@case("CST111", dose="mild", data="tabular", net="mlp")
def three_epochs_of_house_prices(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    data = standardised(houses(seed), targets=True)
    net = mlp(6, 48, 48, 1)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    return train(net, optimizer, F.mse_loss, data, epochs=3 if fault else 40, score=r2)


@case("CST113", dose="severe", data="tabular", net="mlp")
def one_doubtful_row_a_step(seed: int, fault: bool = True) -> Diagnosis:
    """Outcomes that are little better than coin flips, learnt one at a time."""
    torch.manual_seed(seed)
    g = source(seed)
    X = torch.randn(1800, 6, generator=g)
    truth = 0.8 * (X[:, 0] + X[:, 1] - X[:, 2] * X[:, 3].sign())
    y = torch.bernoulli(torch.sigmoid(truth), generator=g)[:, None]
    data = Split(X[:1200], y[:1200], X[1200:], (truth[1200:, None] > 0).float())
    net = mlp(6, 24, 1)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.03)
    loss = nn.BCEWithLogitsLoss()
    epochs, size = (1, 1) if fault else (8, 64)
    return train(net, optimizer, loss, data, epochs=epochs, size=size, tell="module")


# The other half of the definition: one step an epoch is too few. More epochs cure it as well.
@case("CST113", dose="severe", data="tabular", net="mlp", accept=("CST111",))
def all_rows_in_one_batch(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    data = friedman(seed, n_train=1200)
    net = mlp(8, 64, 64, 1)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    size = len(data.X) if fault else 32
    return train(net, optimizer, F.mse_loss, data, epochs=15, size=size, score=r2, tell="all")


@case("CST114", dose="severe", data="tabular", net="linear")
def powers_of_one_variable(seed: int, fault: bool = True) -> Diagnosis:
    """A polynomial fitted by plain descent on standardised, nearly collinear powers."""
    torch.manual_seed(seed)
    g = source(seed)
    t = 2 * torch.rand(500, 1, generator=g)
    y = torch.sin(4 * t) + 0.05 * torch.randn(500, 1, generator=g)
    powers = torch.cat([t**k for k in range(1, 8)], 1)
    data = standardised(split(powers, y, seed, 350), targets=True)
    if not fault:
        data = _whitened(data)
    net = nn.Linear(7, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.08)
    doctor = watch(net, optimizer)
    for _ in range(60):
        for x, target in batches(data.X, data.y, 50):
            optimizer.zero_grad()
            loss = (net(x) - target).square().mean()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss)
        with torch.no_grad():
            outputs = net(data.X_val)
        doctor.epoch(validation_loss=F.mse_loss(outputs, data.y_val).item())
    return verdict(doctor, r2(outputs, data.y_val))


@case("CST114", dose="mild", data="tabular", net="mlp")
def many_sensors_of_one_temperature(seed: int, fault: bool = True) -> Diagnosis:
    """What matters are the small differences between columns that all move together."""
    torch.manual_seed(seed)
    g = source(seed)
    shared = torch.randn(900, 1, generator=g)
    own = torch.randn(900, 8, generator=g)
    readings = shared + 0.04 * own
    y = own[:, :1] - own[:, 1:2] + 0.5 * own[:, 2:3].tanh()
    data = standardised(split(readings, y, seed, 600), targets=True)
    if not fault:
        data = _whitened(data)
    net = mlp(8, 32, 1, activation=nn.Tanh)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    return train(net, optimizer, nn.MSELoss(), data, epochs=25, score=r2, tell="module")


def _whitened(data: Split) -> Split:
    _, values, axes = torch.linalg.svd(data.X, full_matrices=False)
    turn = axes.T / values * len(data.X) ** 0.5
    return data._replace(X=data.X @ turn, X_val=data.X_val @ turn)
