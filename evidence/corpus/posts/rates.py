"""Steps too long, too short, too few or badly aimed: CST101, 102, 111, 113, 114."""

import torch
import torch.nn.functional as F
from torch import nn

from castalia.diagnose import Diagnosis, watch
from evidence.corpus.cases import case
from evidence.corpus.posts._data import (
    customers,
    demand,
    gestures,
    handwriting,
    houses,
    parcels,
    reviews,
    rng,
    spectra,
    surnames,
)
from evidence.corpus.posts._loops import end, fit, kernel, quickstart, r2
from evidence.corpus.posts._nets import Encoder, LastStep, Reader, ResNet, SmallCNN, dense


@case("CST101", dose="severe", data="text", net="transformer")
def my_transformer_says_the_same_for_every_review(seed: int, fault: bool = True) -> Diagnosis:
    """Adam with 0.1, copied from a program with SGD, on a transformer."""
    torch.manual_seed(seed)
    model = Encoder()
    opt = torch.optim.Adam(model.parameters(), lr=0.1 if fault else 2e-3)
    return kernel(model, opt, F.cross_entropy, reviews(seed), 10)


@case("CST101", dose="severe", data="tabular", net="mlp", accept=("CST104", "CST105"))
def house_prices_go_to_the_moon(seed: int, fault: bool = True) -> Diagnosis:
    """Momentum 0.95 was added and the rate of 0.3 kept: the loss explodes."""
    torch.manual_seed(seed)
    model = dense(6, 64, 64, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.3 if fault else 0.01, momentum=0.95)
    return fit(model, opt, nn.MSELoss(), houses(seed), 15, metric=r2)


@case("CST101", dose="mild", data="sequences", net="gru")
def watch_gestures_with_rmsprop(seed: int, fault: bool = True) -> Diagnosis:
    """RMSprop at 0.1: the loss goes down and jumps up again all the time."""
    torch.manual_seed(seed)
    model = LastStep(3, 24, 4)
    opt = torch.optim.RMSprop(model.parameters(), lr=0.1 if fault else 3e-3)
    return fit(model, opt, nn.CrossEntropyLoss(), gestures(seed, noise=0.9), 12)


@case("CST101", dose="severe", data="images", net="resnet")
def one_cycle_with_a_peak_of_twelve(seed: int, fault: bool = True) -> Diagnosis:
    """OneCycleLR with max_lr=12 on a small ResNet, stopped on the way down."""
    torch.manual_seed(seed)
    model = ResNet(width=6, blocks=1)
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    top = 12.0 if fault else 0.1
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=top, total_steps=260)
    return kernel(model, opt, F.cross_entropy, handwriting(seed, 500), 8, sched=sched)


@case("CST101", dose="mild", data="tabular", net="selu")
def selu_net_with_adamw_at_a_tenth(seed: int, fault: bool = True) -> Diagnosis:
    """AdamW at 0.15 on a SELU network: noisy and stuck."""
    torch.manual_seed(seed)
    model = dense(6, 48, 48, 48, 4, act=nn.SELU)
    opt = torch.optim.AdamW(model.parameters(), lr=0.15 if fault else 3e-3)
    return quickstart(model, opt, nn.CrossEntropyLoss(), parcels(seed), 20)


@case("CST102", dose="severe", data="images", net="cnn", accept=("CST111",))
def keras_adadelta_in_pytorch(seed: int, fault: bool = True) -> Diagnosis:
    """Adadelta with Keras' default rate of 0.001; PyTorch's is 1.0."""
    torch.manual_seed(seed)
    model = SmallCNN()
    opt = torch.optim.Adadelta(model.parameters(), lr=0.001 if fault else 1.0)
    return fit(model, opt, nn.CrossEntropyLoss(), handwriting(seed), 10)


@case("CST102", dose="severe", data="text", net="gru", accept=("CST111",))
def the_rate_for_fine_tuning_bert(seed: int, fault: bool = True) -> Diagnosis:
    """AdamW at 2e-5, from a post on fine-tuning, for a small GRU from scratch."""
    torch.manual_seed(seed)
    model = Reader()
    opt = torch.optim.AdamW(model.parameters(), lr=2e-5 if fault else 5e-3)
    return kernel(model, opt, F.cross_entropy, reviews(seed), 10, batch_size=32)


@case("CST102", dose="mild", data="sequences", net="conv1d")
def scheduler_stepped_every_batch(seed: int, fault: bool = True) -> Diagnosis:
    """ExponentialLR(0.8) meant for epochs is stepped after each batch: the rate is gone at once."""
    torch.manual_seed(seed)
    model = nn.Sequential(
        nn.Conv1d(1, 12, 5, padding=2), nn.ReLU(), nn.MaxPool1d(2),
        nn.Conv1d(12, 12, 5, padding=2), nn.ReLU(), nn.Flatten(), nn.Linear(240, 3),
    )  # fmt: skip
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    sched = torch.optim.lr_scheduler.ExponentialLR(opt, 0.8 if fault else 0.998)
    return kernel(model, opt, F.cross_entropy, spectra(seed), 10, sched=sched)


@case("CST102", dose="mild", data="tabular", net="mlp", accept=("CST111",))
def gelu_with_sgd_and_a_thousandth(seed: int, fault: bool = True) -> Diagnosis:
    """Plain SGD with 0.001: after twenty epochs the curve still goes down, ever so slowly."""
    torch.manual_seed(seed)
    model = dense(10, 64, 64, 1, act=nn.GELU)
    X, y, X_val, y_val = customers(seed)
    data = X, y.float()[:, None], X_val, y_val.float()[:, None]
    opt = torch.optim.SGD(model.parameters(), lr=1e-3 if fault else 0.5)
    return fit(model, opt, nn.BCEWithLogitsLoss(), data, 20)


@case("CST111", dose="severe", data="text", net="lstm", accept=("CST102",))
def surnames_for_three_epochs(seed: int, fault: bool = True) -> Diagnosis:
    """Stopped after three epochs, as in the tutorial with a thousand times the data."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Embedding(21, 16), LastStep(16, 32, 3, cell=nn.LSTM))
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    return fit(model, opt, nn.CrossEntropyLoss(), surnames(seed), 3 if fault else 25)


@case("CST111", dose="mild", data="tabular", net="mlp", accept=("CST102",))
def houses_left_on_the_slope(seed: int, fault: bool = True) -> Diagnosis:
    """Eight epochs of Adam; both curves were still falling fast."""
    torch.manual_seed(seed)
    model = dense(6, 64, 64, 1, act=nn.ELU)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    data = houses(seed)
    return quickstart(model, opt, nn.MSELoss(), data, 8 if fault else 60, metric=r2)


@case("CST113", dose="severe", data="tabular", net="mlp", accept=("CST101",))
def one_row_at_a_time(seed: int, fault: bool = True) -> Diagnosis:
    """Batches of one row with noisy targets and SGD: the steps point anywhere."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = houses(seed, 800)
    y = y + torch.as_tensor(rng(seed).normal(size=y.shape)).float()
    model = dense(6, 48, 48, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.06)
    data, bs = (X, y, X_val, y_val), 1 if fault else 32
    return fit(model, opt, nn.MSELoss(), data, 2 if fault else 15, batch_size=bs, metric=r2)


@case("CST113", dose="severe", data="images", net="cnn", accept=("CST111", "CST102"))
def whole_data_set_as_one_batch(seed: int, fault: bool = True) -> Diagnosis:
    """The batch is the whole training set, so twelve epochs are twelve steps."""
    torch.manual_seed(seed)
    model = SmallCNN(act=nn.GELU)
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    data = handwriting(seed)
    bs = 1000 if fault else 32
    return fit(model, opt, nn.CrossEntropyLoss(), data, 12, batch_size=bs)


@case("CST114", dose="severe", data="curve", net="linear", accept=("CST201",))
def polynomial_by_gradient_descent(seed: int, fault: bool = True) -> Diagnosis:
    """Powers x to x^7 as columns of a linear model, plain descent: a long narrow valley."""
    torch.manual_seed(seed)
    r = rng(seed)
    x = torch.as_tensor(r.uniform(-1, 1, (160, 1))).float()
    y = torch.sin(4 * x) + 0.05 * torch.randn(160, 1)
    P = torch.cat([x**k for k in range(1, 8)], 1)
    P = (P - P.mean(0)) / P.std(0)
    if not fault:
        P = torch.linalg.qr(P)[0] * 160**0.5  # orthogonal columns
    model = nn.Linear(7, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    doctor = watch(model, opt)
    for _ in range(120):
        opt.zero_grad()
        loss = ((model(P[:120]) - y[:120]) ** 2).mean()
        loss.backward()
        opt.step()
    return end(doctor, r2(model(P[120:]).detach(), y[120:]))


@case("CST114", dose="mild", data="tabular", net="linear")
def five_thermometers_in_one_room(seed: int, fault: bool = True) -> Diagnosis:
    """Five all but equal columns, and the target is in their small differences; plain SGD."""
    torch.manual_seed(seed)
    r = rng(seed)
    room = r.normal(size=(400, 1))
    apart = r.normal(size=(400, 5))
    X = torch.as_tensor(room + 0.06 * apart if fault else apart).float()
    y = torch.as_tensor(apart @ [1.0, -1.0, 0.5, -0.5, 0.2]).float()[:, None] + room[0, 0] * 0
    model = nn.Linear(5, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    data = X[:300], y[:300], X[300:], y[300:]
    return fit(model, opt, nn.MSELoss(), data, 25, metric=r2)


@case("CST113", dose="mild", data="sequences", net="lstm", accept=("CST111", "CST102"))
def forecast_with_two_updates_an_epoch(seed: int, fault: bool = True) -> Diagnosis:
    """150 windows in a batch of 300: fifteen epochs make thirty steps."""
    torch.manual_seed(seed)
    model = LastStep(1, 24, 1, cell=nn.LSTM)
    opt = torch.optim.Adam(model.parameters(), lr=4e-3)
    bs = 150 if fault else 16
    return fit(model, opt, nn.MSELoss(), demand(seed), 15, batch_size=bs, metric=r2)
