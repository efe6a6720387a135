"""Nothing between the layers, shapes that broadcast, sums over the wrong axis: CST303, 304, 305."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.diagnose import Diagnosis, watch
from evidence.corpus.cases import case
from evidence.corpus.styles._data import (
    arms,
    commands,
    digit_images,
    patches,
    properties,
    sensors,
)
from evidence.corpus.styles._loops import Carla, anna, ben, done, explained, right
from evidence.corpus.styles._nets import ConvNet, SensorRNN, TextRNN, dense


class Forgetful(nn.Module):
    """An activation that is made and not called."""

    def __init__(self, fault: bool) -> None:
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(4, 48), nn.Linear(48, 48), nn.Linear(48, 2)
        self.act = nn.ReLU()
        self.fault = fault

    def forward(self, x: Tensor) -> Tensor:
        x = self.fc1(x)
        x = x if self.fault else self.act(x)
        x = self.fc2(x)
        x = x if self.fault else self.act(x)
        return self.fc3(x)


@case("CST303", dose="severe", data="tabular", net="mlp")
def an_activation_that_nobody_calls(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = Forgetful(fault)
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    return ben(net, opt, F.mse_loss, arms(seed), 12, score=explained)


@case("CST303", dose="mild", data="images", net="segmentation")
def filters_upon_filters(seed: int, fault: bool = True) -> Diagnosis:
    """Three convolutions with batch normalisation and no bend."""
    torch.manual_seed(seed)
    bend = nn.Identity if fault else nn.ReLU
    X, y, X_val, y_val = patches(seed)
    data = X, (y > 0).long(), X_val, (y_val > 0).long()  # bright and dark are one class
    net = nn.Sequential(nn.Conv2d(1, 10, 3, padding=1), nn.BatchNorm2d(10), bend(),
                        nn.Conv2d(10, 10, 3, padding=1), nn.BatchNorm2d(10), bend(),
                        nn.Conv2d(10, 2, 1))  # fmt: skip
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)

    def pixels(out: Tensor, target: Tensor) -> float:
        return right(out.movedim(1, -1), target)

    return anna(net, opt, nn.CrossEntropyLoss(), data, 6, size=10, score=pixels)


@case("CST304", dose="severe", data="series", net="lstm")
def a_column_of_forecasts_against_a_row(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    X, y, X_val, y_val = sensors(seed)
    net = SensorRNN()
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    doctor = watch(net, opt)
    for _ in range(10):
        for rows in torch.randperm(len(X)).split(30):
            target = y[rows].squeeze(1) if fault else y[rows]
            loss = (net(X[rows]) - target).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        with torch.no_grad():
            out = net(X_val)
        doctor.epoch(validation_score=explained(out, y_val))
    return done(doctor, explained(out, y_val))


@case("CST304", dose="severe", data="images", net="cnn")
def how_much_ink_there_is(seed: int, fault: bool = True) -> Diagnosis:
    """A smooth L1 loss of (N, 1) and (N,)."""
    torch.manual_seed(seed)
    X, _, X_val, _ = digit_images(seed)
    y, y_val = (4 * part.mean((1, 2, 3)) for part in (X, X_val))
    if not fault:
        y, y_val = y[:, None], y_val[:, None]
    net = ConvNet(out=1)
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)

    def flat(out: Tensor, target: Tensor) -> float:
        return explained(out.flatten(), target.flatten())

    return anna(net, opt, nn.SmoothL1Loss(), (X, y, X_val, y_val), 8, score=flat)


@case("CST305", dose="severe", data="images", net="cnn")
def probabilities_over_the_batch(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    X, y, X_val, y_val = digit_images(seed)
    net = ConvNet()
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    doctor = watch(net, opt)
    for _ in range(6):
        for rows in torch.randperm(len(X)).split(30):
            probs = torch.softmax(net(X[rows]), dim=0 if fault else 1)
            loss = F.nll_loss(torch.log(probs + 1e-9), y[rows])
            opt.zero_grad()
            loss.backward()
            opt.step()
            doctor.log(loss=loss, outputs=probs, targets=y[rows])
        with torch.no_grad():
            out = net(X_val)
        doctor.epoch(validation_score=right(out, y_val))
    return done(doctor, right(out, y_val))


@case("CST305", dose="severe", data="images", net="segmentation")
def every_row_of_pixels_sums_to_one(seed: int, fault: bool = True) -> Diagnosis:
    """The classes are on axis 1, the softmax was taken over axis 2."""
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Conv2d(1, 10, 3, padding=1), nn.ReLU(), nn.Conv2d(10, 3, 3, padding=1),
                        nn.LogSoftmax(dim=2 if fault else 1))  # fmt: skip
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)

    def pixels(out: Tensor, target: Tensor) -> float:
        return right(out.movedim(1, -1), target)

    return anna(net, opt, nn.NLLLoss(), patches(seed), 8, size=10, score=pixels)


class Pooled(TextRNN):
    """Attention pooling; its weights should sum to one over time."""

    fault = True

    def forward(self, tokens: Tensor) -> Tensor:
        hidden, _ = self.rnn(self.emb(tokens))  # (N, T, H)
        weight = torch.softmax(8 * hidden[..., :1], dim=0 if self.fault else 1)
        return self.out((weight * hidden).sum(1))


@case("CST305", dose="mild", data="tokens", net="gru")
def attention_weights_over_the_batch(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = Pooled()
    net.fault = fault
    opt = torch.optim.Adam(net.parameters(), lr=0.01)
    return Carla(net, opt, nn.CrossEntropyLoss()).fit(commands(seed), 8)


@case("CST304", dose="severe", data="tabular", net="mlp")
def one_label_column_against_a_row(seed: int, fault: bool = True) -> Diagnosis:
    """A logistic loss by hand: logits (N, 1), labels (N,)."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = properties(seed)
    y, y_val = y[:, 0], y_val[:, 0]
    net = dense(64, 32, 1)
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)

    def logistic(logit: Tensor, label: Tensor) -> Tensor:
        logit = logit if fault else logit.squeeze(1)
        return (F.softplus(logit) - label * logit).mean()

    def hits(out: Tensor, label: Tensor) -> float:
        return right(out.squeeze(1), label)

    return Carla(net, opt, logistic, hits).fit((X, y, X_val, y_val), 8)
