"""Rates too high or too low, and trainings that end too soon: CST101, 102, 111."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.diagnose import Diagnosis, watch
from evidence.corpus.cases import case
from evidence.corpus.styles._data import (
    arms,
    commands,
    digit_images,
    grammar,
    patches,
    ratings,
    sensors,
)
from evidence.corpus.styles._loops import Carla, anna, ben, done, explained, right
from evidence.corpus.styles._nets import (
    ConvNet,
    Factors,
    SensorRNN,
    TextRNN,
    TinyGPT,
    dense,
)


@case("CST101", dose="severe", data="images", net="cnn")
def a_zero_missing_in_adams_rate(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = ConvNet()
    opt = torch.optim.Adam(net.parameters(), lr=0.3 if fault else 0.003)
    return anna(net, opt, nn.CrossEntropyLoss(), digit_images(seed), 6)


@case("CST101", dose="mild", data="tokens", net="transformer")
def a_language_model_at_a_tenth(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    train, val = grammar(seed)
    net = TinyGPT()
    opt = torch.optim.AdamW(net.parameters(), lr=0.1 if fault else 3e-3)

    def loss_fn(logits: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(logits.flatten(0, 1), y.flatten())

    data = train[:, :-1], train[:, 1:], val[:, :-1], val[:, 1:]
    return ben(net, opt, loss_fn, data, 5, bs=15)


@case("CST101", dose="severe", data="ratings", net="embedding", accept=("CST104",))
def losses_summed_at_a_rate_for_means(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = Factors()
    opt = torch.optim.SGD(net.parameters(), lr=0.5 if fault else 0.02)
    return Carla(net, opt, nn.MSELoss(reduction="sum"), explained).fit(ratings(seed), 12)


@case("CST101", dose="severe", data="series", net="lstm")
def rmsprop_at_one(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = SensorRNN()
    opt = torch.optim.RMSprop(net.parameters(), lr=1.0 if fault else 0.003)
    return anna(net, opt, nn.MSELoss(), sensors(seed), 10, score=explained)


@case("CST101", dose="mild", data="tabular", net="mlp")
def momentum_added_to_a_rate_that_needed_none(seed: int, fault: bool = True) -> Diagnosis:
    """The rate was right for plain descent; momentum multiplies it by a hundred."""
    torch.manual_seed(seed)
    net = dense(4, 48, 48, 2, act=nn.Tanh)
    opt = torch.optim.SGD(net.parameters(), lr=0.3, momentum=0.99 if fault else 0.0)
    return ben(net, opt, F.mse_loss, arms(seed), 12, score=explained)


@case("CST102", dose="severe", data="images", net="autoencoder")
def an_autoencoder_at_a_millionth(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    X, _, X_val, _ = digit_images(seed)
    X, X_val = X.flatten(1), X_val.flatten(1)
    net = dense(64, 48, 12, 48, 64)
    opt = torch.optim.Adam(net.parameters(), lr=1e-6 if fault else 3e-3)
    return anna(net, opt, nn.MSELoss(), (X, X, X_val, X_val), 10, score=explained)


@case("CST102", dose="severe", data="images", net="cnn")
def the_scheduler_steps_with_every_batch(seed: int, fault: bool = True) -> Diagnosis:
    """A tenth after every batch instead of every few epochs."""
    torch.manual_seed(seed)
    net = ConvNet()
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    schedule = torch.optim.lr_scheduler.StepLR(opt, step_size=4, gamma=0.1)
    return ben(
        net, opt, F.cross_entropy, digit_images(seed), 6, scheduler=schedule, per_batch=fault
    )


@case("CST102", dose="severe", data="series", net="gru")
def the_mean_divided_by_the_batch_size_again(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    X, y, X_val, y_val = sensors(seed)
    net = SensorRNN(nn.GRU)
    opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    doctor = watch(net, opt)
    for _epoch in range(12):
        for rows in torch.randperm(len(X)).split(50):
            out = net(X[rows])
            loss = ((out - y[rows]) ** 2).mean()
            if fault:
                loss = loss / len(rows) / out.shape[0]
            opt.zero_grad()
            loss.backward()
            opt.step()
        with torch.no_grad():
            out = net(X_val)
        doctor.epoch(((out - y_val) ** 2).mean().item(), explained(out, y_val))
    return done(doctor, explained(out, y_val))


@case("CST102", dose="severe", data="images", net="segmentation")
def gradients_clipped_to_a_ten_thousandth(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.Conv2d(12, 12, 3, padding=1),
                        nn.ReLU(), nn.Conv2d(12, 3, 1))  # fmt: skip
    opt = torch.optim.SGD(net.parameters(), lr=0.2)
    clip = 1e-4 if fault else 1.0
    return ben(net, opt, F.cross_entropy, patches(seed), 10, bs=10, score=_pixels, clip=clip)


def _pixels(out: torch.Tensor, y: torch.Tensor) -> float:
    return right(out.movedim(1, -1), y)


@case("CST102", dose="mild", data="tokens", net="rnn")
def plain_descent_at_adams_rate(seed: int, fault: bool = True) -> Diagnosis:
    """Adam was exchanged for SGD and its rate was kept."""
    torch.manual_seed(seed)
    net = TextRNN(nn.RNN)
    kind = torch.optim.SGD if fault else torch.optim.Adam
    opt = kind(net.parameters(), lr=3e-3)
    return Carla(net, opt, nn.CrossEntropyLoss()).fit(commands(seed), 12)


@case("CST111", dose="severe", data="tokens", net="transformer")
def two_epochs_of_a_language(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    train, val = grammar(seed)
    net = TinyGPT()
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    doctor = watch(net, opt, task="lm")
    for _epoch in range(2 if fault else 10):
        for rows in torch.randperm(len(train)).split(15):
            logits = net(train[rows, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), train[rows, 1:].flatten())
            opt.zero_grad()
            loss.backward()
            opt.step()
            doctor.log(loss=loss, outputs=logits, targets=train[rows, 1:])
        with torch.no_grad():
            logits = net(val[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), val[:, 1:].flatten())
        doctor.epoch(loss.item(), right(logits, val[:, 1:]))
    return done(doctor, right(logits, val[:, 1:]))


@case("CST111", dose="mild", data="tabular", net="mlp")
def the_arm_is_still_learning(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = dense(4, 64, 64, 2)
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    return anna(net, opt, nn.MSELoss(), arms(seed), 5 if fault else 60, score=explained)
