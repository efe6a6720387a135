"""Layers in a row, shapes that broadcast, softmax along the wrong axis: CST303, 304, 305."""

import warnings

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.diagnose import Diagnosis, watch
from evidence.corpus.cases import case
from evidence.corpus.exercises._data import (
    digits,
    friedman,
    rings,
    series,
    source,
    split,
    waves,
)
from evidence.corpus.exercises._loops import accuracy, batches, r2, train, verdict
from evidence.corpus.exercises._nets import Recurrent, mlp


@case("CST303", dose="severe", data="tabular", net="mlp")
def three_linear_layers_in_a_row(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = mlp(4, 64, 64, 2, activation=nn.Identity if fault else nn.ReLU)
    if fault:
        net = nn.Sequential(*(layer for layer in net if isinstance(layer, nn.Linear)))
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    return train(net, optimizer, nn.CrossEntropyLoss(), rings(seed), epochs=15, tell="module")


class Filters(nn.Module):
    """Three convolutions over time; the author forgot what stands between them."""

    def __init__(self, linear: bool) -> None:
        super().__init__()
        self.conv1 = nn.Conv1d(1, 16, 5, stride=2, padding=2)
        self.conv2 = nn.Conv1d(16, 16, 3, stride=2, padding=1)
        self.conv3 = nn.Conv1d(16, 16, 3, stride=2, padding=1)
        self.fc = nn.Linear(64, 3)
        self.between = nn.Identity() if linear else nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:  # (B, T, 1)
        x = self.between(self.conv1(x.transpose(1, 2)))
        x = self.between(self.conv2(x))
        x = self.between(self.conv3(x))
        return self.fc(x.flatten(1))


@case("CST303", dose="severe", data="series", net="conv1d")
def convolutions_with_nothing_between(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = Filters(linear=fault)
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    return train(net, optimizer, F.cross_entropy, waves(seed), epochs=20, tell="loss")


@case("CST304", dose="severe", data="tabular", net="mlp")
def a_column_minus_a_row(seed: int, fault: bool = True) -> Diagnosis:
    """Outputs (N, 1), targets (N,): every prediction is compared with every target."""
    torch.manual_seed(seed)
    part = friedman(seed)
    data = part._replace(y=part.y[:, 0], y_val=part.y_val[:, 0]) if fault else part
    net = mlp(8, 64, 1)
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)

    def loss_fn(out: Tensor, y: Tensor) -> Tensor:
        return torch.mean((out - y) ** 2)

    return train(net, optimizer, loss_fn, data, epochs=15, score=r2, tell="nothing", report="loss")


@case("CST304", dose="severe", data="series", net="lstm")
def a_forecast_that_is_only_the_mean(seed: int, fault: bool = True) -> Diagnosis:
    """The warning about sizes scrolled by."""
    torch.manual_seed(seed)
    values = series(seed, 500)
    windows = values.unfold(0, 13, 1)  # (N, 13)
    X, y = windows[:, :12, None], windows[:, 12]
    net, loss_fn = Recurrent(nn.LSTM, 1, 16, 1), nn.MSELoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    doctor = watch(net, optimizer, loss_fn)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(8):
            for x, target in batches(X[:360], y[:360], 32):
                out = net(x)
                loss = loss_fn(out if fault else out.squeeze(1), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            with torch.no_grad():
                out = net(X[360:])
                doctor.epoch(validation_loss=loss_fn(out if fault else out[:, 0], y[360:]).item())
    return verdict(doctor, r2(out, y[360:]))


@case("CST305", dose="severe", data="images", net="mlp")
def log_softmax_over_the_batch(seed: int, fault: bool = True) -> Diagnosis:
    """In use, where images come one at a time, the answer is always the first class."""
    torch.manual_seed(seed)
    data = digits(seed, n_train=600, flat=True)
    net = nn.Sequential(mlp(64, 48, 10), nn.LogSoftmax(dim=0 if fault else 1))
    loss_fn = nn.NLLLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.2)
    doctor = watch(net, optimizer, loss_fn)
    for _ in range(12):
        net.train()
        for x, y in batches(data.X, data.y, 16):
            loss = loss_fn(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            outputs = torch.cat([net(x) for x in data.X_val[:100].split(1)])
        doctor.epoch(validation_score=accuracy(outputs, data.y_val[:100]))
    return verdict(doctor, accuracy(outputs, data.y_val[:100]))


class Tagger(nn.Module):
    """One of four tags for every step of a sequence."""

    def __init__(self, axis: int) -> None:
        super().__init__()
        self.rnn = nn.GRU(6, 24, batch_first=True, bidirectional=True)
        self.head = nn.Linear(48, 4)
        self.axis = axis

    def forward(self, x: Tensor) -> Tensor:  # (B, T, 6) -> (B, T, 4)
        return F.softmax(self.head(self.rnn(x)[0]), dim=self.axis)


@case("CST305", dose="severe", data="sequences", net="gru")
def tags_normalised_over_time(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    X = torch.randn(450, 10, 6, generator=source(seed))
    y = 2 * (X[..., 0] + X[..., 1] > 0).long() + (X[..., 2] - X[..., 3] > 0).long()
    data = split(X, y, seed, 300)
    net = Tagger(axis=1 if fault else 2)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)

    def loss_fn(p: Tensor, tags: Tensor) -> Tensor:
        return F.nll_loss(torch.log(p + 1e-9).flatten(0, 1), tags.flatten())

    return train(net, optimizer, loss_fn, data, epochs=8, tell="all")
