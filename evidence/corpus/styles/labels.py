"""Rare classes and wrong labels: CST204, 205."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.diagnose import Diagnosis
from evidence.corpus.cases import case
from evidence.corpus.styles._data import Split, commands, digit_images, properties, rng
from evidence.corpus.styles._loops import SECONDS, Carla, anna, scores
from evidence.corpus.styles._nets import ConvNet, TextRNN, dense


def _recall(out: Tensor, y: Tensor) -> float:
    """The mean over the classes of how many of them are found."""
    guess = out.argmax(-1)
    return sum((guess[y == k] == k).float().mean().item() for k in y.unique()) / len(y.unique())


def _alarms(seed: int) -> Split:
    """Does the third command occur and is a rare word before it; one row in thirty."""
    X, y, X_val, y_val = commands(seed, n=900, val=400)
    X = torch.cat([X, X_val])
    y = torch.cat([y, y_val])
    rare = (y == 2).long()
    keep = (rare == 0) | (torch.rand(len(y), generator=rng(seed)) < 0.1)
    X, rare = X[keep], rare[keep]
    return X[:600], rare[:600], X[600:], rare[600:]


@case("CST204", dose="severe", data="tokens", net="gru")
def one_alarm_in_thirty(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    weight = torch.tensor([1.0, 1.0 if fault else 30.0])
    net = TextRNN(out=2)
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    loss_fn = nn.CrossEntropyLoss(weight=weight)
    X, y, X_val, y_val = _alarms(seed)
    found = Carla(net, opt, loss_fn).fit((X, y, X_val, y_val), 8)
    scores.append(_recall(net(X_val).detach(), y_val))
    return found


@case("CST204", dose="severe", data="images", net="cnn")
def nine_parcels_in_ten_go_to_zero(seed: int, fault: bool = True) -> Diagnosis:
    """The digit 0 is common, all others are rare and blurred by noise."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = digit_images(seed, n=1200, val=597)
    g = rng(seed)

    def rare(X: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        zeros, others = (y == 0).nonzero()[:, 0], (y != 0).nonzero()[:, 0]
        many = zeros[torch.randint(len(zeros), (len(y) // 2,), generator=g)]
        rows = torch.cat([many, others[: len(y) // 20]])
        rows = rows[torch.randperm(len(rows), generator=g)]
        return X[rows] + 1.2 * torch.randn(X[rows].shape, generator=g), (y[rows] > 0).long()

    X, y = rare(X, y)
    X_val, y_val = rare(X_val, y_val)
    net = ConvNet(out=2, width=4)
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    loss_fn = nn.CrossEntropyLoss(weight=None if fault else torch.tensor([1.0, 10.0]))
    found = anna(net, opt, loss_fn, (X, y, X_val, y_val), 8)
    scores.append(_recall(net(X_val).detach(), y_val))
    return found


@case("CST205", dose="severe", data="images", net="cnn")
def a_third_of_the_digits_mislabelled(seed: int, fault: bool = True) -> Diagnosis:
    from castalia.diagnose import examine

    torch.manual_seed(seed)
    X, y, X_val, y_val = digit_images(seed)
    said = y.clone()
    if fault:
        wrong = torch.rand(len(y), generator=rng(seed)) < 0.3
        said[wrong] = torch.randint(10, (int(wrong.sum()),), generator=rng(seed))
    net, loss_fn = ConvNet(), nn.CrossEntropyLoss()
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    for _ in range(10):
        for rows in torch.randperm(len(X)).split(32):
            opt.zero_grad()
            loss_fn(net(X[rows]), said[rows]).backward()
            opt.step()
    with torch.no_grad():
        scores.append(-F.cross_entropy(net(X_val), y_val).item())
    return examine(net, loss_fn, (X, said), (X_val, y_val), optimizer=opt, seconds=SECONDS)


@case("CST205", dose="severe", data="tabular", net="mlp", accept=("CST401", "CST403"))
def a_fifth_of_the_answers_turned_round(seed: int, fault: bool = True) -> Diagnosis:
    """All four properties of a fifth of the digits are the opposite of the truth."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = properties(seed)
    if fault:
        turned = torch.rand(len(y), 1, generator=rng(seed)) < 0.25
        y = torch.where(turned, 1 - y, y)
    net = dense(64, 64, 4)
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    return Carla(net, opt, nn.BCEWithLogitsLoss()).fit((X, y, X_val, y_val), 20)


@case("CST205", dose="severe", data="tokens", net="gru", accept=("CST403", "CST401", "CST406"))
def labels_one_row_below_their_sentences(seed: int, fault: bool = True) -> Diagnosis:
    """A header line was skipped in one file and not in the other."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = commands(seed)
    shift = 1 if fault else 0
    data = X, y.roll(shift), X_val, y_val.roll(shift)
    net = TextRNN()
    opt = torch.optim.Adam(net.parameters(), lr=0.01)
    return anna(net, opt, nn.CrossEntropyLoss(), data, 12)
