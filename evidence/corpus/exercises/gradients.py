"""Gradients that vanish, explode or are no numbers: CST103, 104, 105."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.diagnose import Diagnosis, watch
from evidence.corpus.cases import case
from evidence.corpus.exercises._data import cancer, digits, friedman, source, standardised
from evidence.corpus.exercises._loops import accuracy, batches, r2, train, verdict
from evidence.corpus.exercises._nets import mlp


@case("CST103", dose="severe", data="images", net="mlp")
def ten_sigmoid_layers(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    kind = nn.Sigmoid if fault else nn.ReLU
    net = mlp(64, *[48] * 9, 10, activation=kind)
    for layer in net:
        if isinstance(layer, nn.Linear):
            nn.init.xavier_normal_(layer.weight, gain=1.0 if fault else 2**0.5)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    data = digits(seed, n_train=700, flat=True)
    return train(net, optimizer, nn.CrossEntropyLoss(), data, epochs=12, tell="module")


@case("CST103", dose="severe", data="images", net="cnn")
def a_deep_network_of_the_nineties(seed: int, fault: bool = True) -> Diagnosis:
    """Seven convolutions with sigmoids between them, no skip connection, no normalisation."""
    torch.manual_seed(seed)
    layers: list[nn.Module] = []
    for channels in [1, *[8] * 6]:
        layers += [nn.Conv2d(channels, 8, 3, 2 if channels == 1 else 1, 1)]
        layers += [nn.Sigmoid()] if fault else [nn.BatchNorm2d(8), nn.ReLU()]
    net = nn.Sequential(*layers, nn.AvgPool2d(2), nn.Flatten(), nn.Linear(32, 10))
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    data = digits(seed, n_train=600)
    return train(net, optimizer, F.cross_entropy, data, epochs=4, tell="loss", report="score")


class Unrolled(nn.Module):
    """A hand-written recurrence that must carry its first input to the end."""

    def __init__(self, hidden: int, recurrent: Tensor, activation=torch.tanh) -> None:
        super().__init__()
        self.read = nn.Linear(4, hidden)
        self.carry = nn.Linear(hidden, hidden, bias=False)
        self.head = nn.Linear(hidden, 4)
        self.carry.weight.data = recurrent
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        h = x.new_zeros(len(x), self.carry.in_features)
        for step in x.unbind(1):
            h = self.activation(self.read(step) + self.carry(h))
        return self.head(h)


def _first_symbol(seed: int, n: int, length: int) -> tuple[Tensor, Tensor]:
    y = torch.randint(4, (n,), generator=source(seed))
    x = 0.03 * torch.randn(n, length, 4, generator=source(seed + 99))
    x[:, 0] += 2 * F.one_hot(y, 4)
    return x, y


@case("CST103", dose="mild", data="sequences", net="rnn")
def the_first_symbol_is_forgotten(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    length, hidden = 15, 24
    recurrent = nn.init.orthogonal_(torch.empty(hidden, hidden)) * (0.5 if fault else 1.0)
    net = Unrolled(hidden, recurrent)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    x, y = _first_symbol(seed, 384, length)
    x_val, y_val = _first_symbol(seed + 1000, 200, length)
    doctor = watch(net, optimizer, task="multiclass")
    for _ in range(8):
        for inputs, targets in batches(x, y, 32):
            loss = F.cross_entropy(net(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss)
        with torch.no_grad():
            outputs = net(x_val)
        doctor.epoch(F.cross_entropy(outputs, y_val).item(), accuracy(outputs, y_val))
    return verdict(doctor, accuracy(outputs, y_val))


@case("CST104", dose="severe", data="sequences", net="rnn")
def a_recurrence_that_grows(seed: int, fault: bool = True) -> Diagnosis:
    """ReLU recurrence whose every step multiplies by more than one."""
    torch.manual_seed(seed)
    length, hidden = 16, 24
    net = Unrolled(hidden, torch.eye(hidden) * (1.8 if fault else 1.0), torch.relu)
    nn.init.zeros_(net.read.bias)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9)
    x, y = _first_symbol(seed, 384, length)
    x_val, y_val = _first_symbol(seed + 1000, 200, length)
    doctor = watch(net, optimizer)
    for _ in range(8):
        for inputs, targets in batches(x, y, 32):
            optimizer.zero_grad()
            F.cross_entropy(net(inputs), targets).backward()
            optimizer.step()
        with torch.no_grad():
            outputs = net(x_val)
        doctor.epoch(validation_score=accuracy(outputs, y_val))
    return verdict(doctor, accuracy(outputs, y_val))


class Stack(nn.Module):
    """Residual blocks without normalisation; each adds as much as it is given."""

    def __init__(self, width: int, depth: int, branch: float) -> None:
        super().__init__()
        self.lift = nn.Linear(8, width)
        self.blocks = nn.ModuleList(mlp(width, width, width) for _ in range(depth))
        self.head = nn.Linear(width, 1)
        for block in self.blocks:
            nn.init.kaiming_normal_(block[0].weight, nonlinearity="relu")
            nn.init.kaiming_normal_(block[2].weight, nonlinearity="relu")
            block[2].weight.data *= branch

    def forward(self, x: Tensor) -> Tensor:
        h = self.lift(x)
        for block in self.blocks:
            h = h + block(h)
        return self.head(h)


# The spread grows with depth at step 0 already, so the initialisation is an equally right answer.
@case("CST104", dose="severe", data="tabular", net="resnet", accept=("CST109",))
def residual_sums_without_normalisation(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = Stack(32, 16, branch=1.0 if fault else 0.1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    data = friedman(seed)
    return train(net, optimizer, nn.MSELoss(), data, epochs=8, score=r2, tell="module")


@case("CST105", dose="severe", data="tabular", net="mlp")
def the_logarithm_of_a_probability_of_zero(seed: int, fault: bool = True) -> Diagnosis:
    """Binary cross-entropy by hand; it works until one probability is exactly 0 or 1."""
    torch.manual_seed(seed)
    data = standardised(cancer(seed))
    net = mlp(30, 32, 1)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    doctor = watch(net, optimizer)
    for _ in range(25):
        for x, y in batches(data.X, data.y.float(), 32):
            p = torch.sigmoid(net(x)).squeeze(1)
            if not fault:
                p = p.clamp(1e-6, 1 - 1e-6)
            loss = -(y * torch.log(p) + (1 - y) * torch.log(1 - p)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss)
        with torch.no_grad():
            score = accuracy(net(data.X_val), data.y_val)
        doctor.epoch(validation_score=score)
    return verdict(doctor, score)


@case("CST105", dose="severe", data="images", net="siamese")
def the_distance_of_a_image_to_itself(seed: int, fault: bool = True) -> Diagnosis:
    """The root has no slope at 0: the loss is finite, its gradient is not."""
    torch.manual_seed(seed)
    data = digits(seed, flat=True)
    net = mlp(64, 64, 16)
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    doctor = watch(net, optimizer)
    for epoch in range(6):
        for x, y in batches(data.X, data.y, 64):
            if epoch > 0:  # pairs were drawn apart at first, then at random: some are twins
                other = torch.randint(len(x), (len(x),))
                other[0] = 0
            else:
                other = torch.roll(torch.arange(len(x)), 1)
            gap = (net(x) - net(x[other])).square().sum(1)
            distance = (gap if fault else gap + 1e-8).sqrt()
            same = (y == y[other]).float()
            loss = (same * distance**2 + (1 - same) * F.relu(2 - distance) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss)
        doctor.epoch()
    with torch.no_grad():
        near = torch.cdist(net(data.X_val), net(data.X)).argmin(1)
    return verdict(doctor, (data.y[near] == data.y_val).float().mean())


# The cause of the missing numbers are pixels that never change: naming them is as right.
@case("CST105", dose="severe", data="images", net="mlp", accept=("CST203",))
def pixels_divided_by_a_spread_of_zero(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    data = digits(seed, flat=True)
    mean, spread = data.X.mean(0), data.X.std(0)
    if not fault:
        spread = spread.clamp(min=0.05)
    data = data._replace(X=(data.X - mean) / spread, X_val=(data.X_val - mean) / spread)
    net = mlp(64, 48, 10)
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    return train(net, optimizer, nn.CrossEntropyLoss(), data, epochs=12, tell="module")
