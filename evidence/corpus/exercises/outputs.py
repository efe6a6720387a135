"""Outputs and losses that do not belong together: CST301, 302, 306."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.diagnose import Diagnosis
from evidence.corpus.cases import case
from evidence.corpus.exercises._data import (
    Split,
    cancer,
    clouds,
    digits,
    friedman,
    source,
    split,
    standardised,
    wine,
)
from evidence.corpus.exercises._loops import accuracy, r2, train
from evidence.corpus.exercises._nets import SmallCNN, mlp


@case("CST301", dose="severe", data="images", net="cnn")
def softmax_before_cross_entropy(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = nn.Sequential(SmallCNN(), nn.Softmax(dim=1) if fault else nn.Identity())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    return train(net, optimizer, nn.CrossEntropyLoss(), digits(seed), epochs=10, tell="module")


@case("CST301", dose="mild", data="tabular", net="mlp")
def sigmoid_before_a_loss_with_logits(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    data = clouds(seed, classes=2, spread=2.0)
    net = nn.Sequential(mlp(10, 32, 1), nn.Sigmoid() if fault else nn.Identity())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def loss_fn(out: Tensor, y: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(out.squeeze(1), y.float())

    def score(out: Tensor, y: Tensor) -> float:
        return accuracy(out - 0.5 if fault else out, y)

    return train(net, optimizer, loss_fn, data, epochs=15, score=score)


@case("CST301", dose="severe", data="tabular", net="mlp")
def softmax_over_one_unit(seed: int, fault: bool = True) -> Diagnosis:
    """The probability of the only class is always one."""
    torch.manual_seed(seed)
    part = standardised(cancer(seed))
    data = part._replace(y=part.y[:, None].float(), y_val=part.y_val[:, None].float())
    net = nn.Sequential(mlp(30, 32, 1), nn.Softmax(dim=1) if fault else nn.Sigmoid())
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)

    def score(p: Tensor, y: Tensor) -> float:
        return accuracy(p - 0.5, y)

    return train(net, optimizer, nn.BCELoss(), data, epochs=15, score=score, tell="module")


@case("CST301", dose="severe", data="tabular", net="mlp")
def a_rectified_regression(seed: int, fault: bool = True) -> Diagnosis:
    """Standardised targets are negative half of the time; the output never is."""
    torch.manual_seed(seed)
    net = nn.Sequential(mlp(8, 32, 32, 1), nn.ReLU() if fault else nn.Identity())
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    return train(net, optimizer, F.mse_loss, friedman(seed), epochs=15, score=r2, tell="nothing")


class Rectified(nn.Module):
    """A classifier whose author put a ReLU behind every layer."""

    def __init__(self, last: bool) -> None:
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(64, 48), nn.Linear(48, 24), nn.Linear(24, 10)
        self.last = last

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        x = self.fc3(x)
        return F.relu(x) if self.last else x


@case("CST301", dose="severe", data="images", net="mlp")
def logits_behind_a_relu(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = Rectified(fault)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    data = digits(seed, flat=True)
    return train(net, optimizer, F.cross_entropy, data, epochs=10, tell="loss", report="score")


@case("CST301", dose="severe", data="images", net="cnn")
def raw_scores_into_nll_loss(seed: int, fault: bool = True) -> Diagnosis:
    """The loss falls below zero and on to minus infinity."""
    torch.manual_seed(seed)
    net = nn.Sequential(SmallCNN(), nn.Identity() if fault else nn.LogSoftmax(dim=1))
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    return train(net, optimizer, F.nll_loss, digits(seed), epochs=8, tell="loss", report="loss")


@case("CST302", dose="severe", data="images", net="cnn")
def the_number_of_the_class_as_a_target(seed: int, fault: bool = True) -> Diagnosis:
    """Squared error of one output against the digit; a 3 lies between a 2 and a 4."""
    torch.manual_seed(seed)
    data = digits(seed)
    net = SmallCNN(classes=1 if fault else 10)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)

    def loss_fn(out: Tensor, y: Tensor) -> Tensor:
        return F.mse_loss(out.squeeze(1), y.float()) if fault else F.cross_entropy(out, y)

    def score(out: Tensor, y: Tensor) -> float:
        guess = out.squeeze(1).round() if fault else out.argmax(1)
        return (guess == y).float().mean().item()

    return train(net, optimizer, loss_fn, data, epochs=10, score=score)


@case("CST302", dose="severe", data="tabular", net="mlp")
def cross_entropy_for_labels_that_do_not_exclude_each_other(
    seed: int, fault: bool = True
) -> Diagnosis:
    torch.manual_seed(seed)
    g = source(seed)
    X = torch.randn(900, 10, generator=g)
    tags = torch.stack([X[:, i] * X[:, i + 1] + X[:, i + 2] > -0.3 for i in range(6)], 1).float()
    data = split(X, tags, seed, 600)
    net = mlp(10, 64, 6)
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    loss_fn = nn.CrossEntropyLoss() if fault else nn.BCEWithLogitsLoss()

    def score(out: Tensor, y: Tensor) -> float:
        p = out.softmax(1) if fault else out.sigmoid()
        return ((p > 0.5) == y.bool()).float().mean().item()

    return train(net, optimizer, loss_fn, data, epochs=20, score=score, tell="module")


@case("CST302", dose="mild", data="images", net="mlp")
def squared_error_of_one_hot_probabilities(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    part = digits(seed, flat=True)
    data = part._replace(y=F.one_hot(part.y, 10).float(), y_val=F.one_hot(part.y_val, 10).float())
    net = nn.Sequential(mlp(64, 32, 10), nn.Softmax(dim=1) if fault else nn.Identity())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    loss_fn = nn.MSELoss() if fault else nn.CrossEntropyLoss()

    def score(out: Tensor, y: Tensor) -> float:
        return accuracy(out, y.argmax(1))

    return train(net, optimizer, loss_fn, data, epochs=15, score=score, tell="module")


@case("CST306", dose="severe", data="tabular", net="mlp")
def the_first_class_dropped_with_its_dummy(seed: int, fault: bool = True) -> Diagnosis:
    """Indicator columns without the first one, as regression wants them: two for three classes."""
    torch.manual_seed(seed)
    part = standardised(wine(seed))
    kept = slice(1, None) if fault else slice(None)
    dummies = [F.one_hot(y, 3).float()[:, kept] for y in (part.y, part.y_val)]
    data = part._replace(y=dummies[0], y_val=dummies[1])
    net = mlp(13, 24, dummies[0].shape[1])
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)

    def score(out: Tensor, _: Tensor) -> float:
        return accuracy(out, part.y_val - 1 if fault else part.y_val)

    loss_fn = nn.CrossEntropyLoss()
    return train(net, optimizer, loss_fn, data, epochs=20, size=16, score=score, tell="module")


# Binary cross-entropy for three exclusive classes is the wrong loss as much as the wrong size.
@case("CST306", dose="severe", data="tabular", net="mlp", accept=("CST302",))
def one_output_for_three_classes(seed: int, fault: bool = True) -> Diagnosis:
    """The third class turns the loss negative."""
    torch.manual_seed(seed)
    data = standardised(wine(seed))
    net = mlp(13, 24, 1 if fault else 3)
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)

    def loss_fn(out: Tensor, y: Tensor) -> Tensor:
        if fault:
            return F.binary_cross_entropy_with_logits(out.squeeze(1), y.float())
        return F.cross_entropy(out, y)

    def score(out: Tensor, y: Tensor) -> float:
        guess = (out.squeeze(1) > 0).long() if fault else out.argmax(1)
        return (guess == y).float().mean().item()

    return train(net, optimizer, loss_fn, data, epochs=20, size=16, score=score, tell="all")


# Three targets meet one output only by broadcasting: that answer is as right.
@case("CST306", dose="severe", data="tabular", net="mlp", accept=("CST304",))
def one_output_for_three_measurements(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    g = source(seed)
    X = torch.randn(750, 5, generator=g)
    y = torch.stack([X[:, 0] * X[:, 1], X[:, 2].sin() * 1.4, X[:, 3] - X[:, 4].abs()], 1)
    y = y + 0.1 * torch.randn(750, 3, generator=g)
    rows = standardised(split(X, y, seed, 500), targets=True)
    data = Split(*rows)
    net = mlp(5, 48, 48, 1 if fault else 3)
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)

    def loss_fn(out: Tensor, target: Tensor) -> Tensor:
        return ((out - target) ** 2).mean()

    def score(out: Tensor, target: Tensor) -> float:
        return r2(out.expand_as(target), target)

    return train(net, optimizer, loss_fn, data, epochs=20, score=score)
