"""Rates, schedules, clipping, decay, initialisation and depth."""

import torch
import torch.nn.functional as F
from torch import nn

from castalia.diagnose import watch
from evidence.corpus.cases import case
from evidence.corpus.programs._data import (
    adding,
    churn,
    cifar,
    housing,
    mnist,
    scaled,
    series,
    sklearn_table,
    spiral,
)
from evidence.corpus.programs._loops import (
    Net,
    Recurrent,
    accuracy,
    mlp,
    notebook,
    posted,
    r2,
    reached,
    tutorial,
    watched,
)


@case("CST101", dose="severe", data="images", net="cnn", accept=("CST106",))
@posted
def adam_with_the_rate_of_sgd(seed, fault):
    """10 % accuracy with Adam at 0.1."""
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1 if fault else 0.003)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), mnist(seed), 5)


@case("CST101", dose="severe", data="tabular", net="mlp", accept=("CST105", "CST106", "CST104"))
@watched
def a_rate_of_one_and_momentum(seed, fault):
    x, y, x_val, y_val = scaled(housing(seed), targets=True)
    net = mlp(5, 64, 64, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=1.0 if fault else 0.01, momentum=0.9)
    doctor = watch(net, optimizer)
    for _ in range(12):
        for idx in torch.randperm(len(x)).split(32):
            optimizer.zero_grad()
            loss = F.smooth_l1_loss(net(x[idx]), y[idx])
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss)
    return doctor, lambda: torch.tensor(reached(net, x_val, y_val, r2)).nan_to_num(-9, -9, -9)


@case("CST101", dose="mild", data="images", net="cnn", accept=("CST106",))
@posted
def one_cycle_with_a_peak_of_three(seed, fault):
    net = Net(channels=3, size=12, classes=4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    peak = 3.0 if fault else 0.05
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, peak, total_steps=11)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), cifar(seed), 10, scheduler=schedule)


@case("CST102", dose="severe", data="images", net="cnn", accept=("CST111",))
@posted
def sgd_at_one_in_a_hundred_thousand(seed, fault):
    """loss: 2.305, 2.304, 2.304 ..."""
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-5 if fault else 0.1, momentum=0.9)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), mnist(seed), 8)


@case("CST102", dose="severe", data="time series", net="lstm", accept=("CST111",))
@posted
def lstm_with_the_rate_of_fine_tuning(seed, fault):
    net = Recurrent(nn.LSTM, 1, 32, 1)
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-6 if fault else 5e-3)
    return tutorial(net, optimizer, nn.MSELoss(), series(seed), 6, batch=16, metric=r2)


@case("CST102", dose="mild", data="tabular", net="mlp", accept=("CST111",))
@posted
def a_tenth_of_the_rate_after_every_epoch(seed, fault):
    net = mlp(10, 48, 48, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1 if fault else 10, gamma=0.1)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), churn(seed), 14, scheduler=schedule)


@case("CST102", dose="mild", data="images", net="cnn", accept=("CST111",))
@posted
def gradients_clipped_at_a_thousandth(seed, fault):
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.5)
    clip = 1e-3 if fault else 5.0
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), mnist(seed), 8, clip=clip)


@case("CST111", dose="severe", data="images", net="cnn", accept=("CST102",))
@posted
def one_epoch_and_a_half(seed, fault):
    x, y, x_val, y_val = cifar(seed)
    net = Net(channels=3, size=12, classes=4)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    return notebook(net, optimizer, F.cross_entropy, (x, y, x_val, y_val), 30 if fault else 400)


@case("CST111", dose="mild", data="tabular", net="mlp", accept=("CST102",))
@posted
def twenty_steps_of_a_spiral(seed, fault):
    net = mlp(2, 64, 64, 3)
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    epochs = 4 if fault else 40
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), spiral(seed), epochs, batch=32)


@case("CST404", dose="severe", data="images", net="cnn", accept=("CST402", "CST406", "CST403"))
@posted
def weight_decay_of_a_third(seed, fault):
    net = Net()
    decay = 0.3 if fault else 1e-4
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3, weight_decay=decay)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), mnist(seed), 6)


@case("CST404", dose="severe", data="tabular", net="mlp", accept=("CST402", "CST403"))
@posted
def an_l2_term_added_by_hand_with_a_heavy_hand(seed, fault):
    x, y, x_val, y_val = scaled(housing(seed), targets=True)
    net = mlp(5, 32, 32, 1)
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)

    def loss_of(out, y):
        l2 = sum(p.pow(2).sum() for p in net.parameters())
        return F.mse_loss(out, y) + (0.5 if fault else 1e-5) * l2

    return notebook(net, optimizer, loss_of, (x, y, x_val, y_val), metric=r2)


@case("CST404", dose="severe", data="tabular", net="mlp")
@posted
def dropout_of_nine_tenths(seed, fault):
    """nn.Dropout(0.9): they took it for the share that is kept."""
    drop = 0.9 if fault else 0.1
    net = nn.Sequential(
        *(nn.Linear(10, 48), nn.ReLU(), nn.Dropout(drop), nn.Linear(48, 48), nn.ReLU()),
        *(nn.Dropout(drop), nn.Linear(48, 2)),
    )
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), churn(seed), 15)


@case("CST103", dose="severe", data="images", net="mlp", accept=("CST107",))
@posted
def eight_sigmoid_layers(seed, fault):
    act = nn.Sigmoid if fault else nn.ReLU
    net = nn.Sequential(nn.Flatten(), mlp(64, *[48] * 7, 10, act=act))
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), mnist(seed), 12)


@case("CST103", dose="severe", data="sequence", net="rnn", accept=("CST402", "CST403", "CST406"))
@posted
def plain_rnn_that_must_remember_for_long(seed, fault):
    """The adding problem: the loss stays at 0.167."""
    net = Recurrent(nn.RNN if fault else nn.GRU, 2, 24, 1)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.015)
    data = adding(seed, 800, 24)
    return tutorial(net, optimizer, nn.MSELoss(), data, 14, batch=32, metric=r2, clip=1.0)


@case("CST104", dose="severe", data="sequence", net="rnn", accept=("CST105", "CST101", "CST109"))
@posted
def relu_rnn_begun_too_wide(seed, fault):
    net = Recurrent(nn.RNN, 1, 32, 1, nonlinearity="relu")
    nn.init.normal_(net.rnn.weight_hh_l0, std=0.6 if fault else 0.1)
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)

    def metric(out, y):
        return max(-9.0, r2(out.nan_to_num(99), y))

    return tutorial(net, optimizer, nn.MSELoss(), series(seed), 10, metric=metric)


@case("CST108", dose="severe", data="tabular", net="mlp", accept=("CST109", "CST103"))
@posted
def all_weights_begin_at_a_constant(seed, fault):
    net = mlp(10, 32, 32, 2)
    if fault:
        for p in net.parameters():
            nn.init.constant_(p, 0.05)
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), churn(seed), 10)


def zeros(module):
    if isinstance(module, nn.Linear | nn.Conv2d):
        nn.init.zeros_(module.weight)
        nn.init.zeros_(module.bias)


@case("CST108", dose="severe", data="images", net="cnn", accept=("CST109", "CST103", "CST110"))
@posted
def model_apply_zeros(seed, fault):
    net = Net()
    if fault:
        net.apply(zeros)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), mnist(seed), 4)


@case("CST109", dose="severe", data="images", net="mlp", accept=("CST104",))
@posted
def weights_of_randn(seed, fault):
    """torch.randn(fan_in, fan_out) by hand, five layers deep; the first loss is 4000."""
    net = nn.Sequential(nn.Flatten(), mlp(64, 64, 64, 64, 10))
    if fault:
        for p in net.parameters():
            nn.init.normal_(p, std=1.0)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), mnist(seed), 6)


@case("CST107", dose="severe", data="images", net="mlp", accept=("CST201", "CST109"))
@posted
def sigmoids_on_pixels_up_to_255(seed, fault):
    x, y, x_val, y_val = mnist(seed)
    size = 255 if fault else 1
    data = (size * x.flatten(1), y, size * x_val.flatten(1), y_val)
    net = mlp(64, 32, 10, act=nn.Sigmoid)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.3, momentum=0.9)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), data, 6)


@case("CST106", dose="severe", data="tabular", net="mlp", accept=("CST109",))
@posted
def biases_far_below_zero(seed, fault):
    net = mlp(10, 48, 48, 2)
    if fault:
        nn.init.constant_(net[2].bias, -4.0)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), churn(seed), 10)


@case("CST113", dose="severe", data="images", net="cnn", accept=("CST111", "CST102"))
@posted
def the_whole_training_set_in_one_batch(seed, fault):
    net = Net(channels=3, size=12, classes=4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    batch = 480 if fault else 16
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), cifar(seed), 10, batch=batch)


@case("CST113", dose="mild", data="tabular", net="mlp", accept=("CST101",))
@posted
def one_row_at_a_time_at_a_bold_rate(seed, fault):
    net = mlp(10, 32, 1)
    x, y, x_val, y_val = scaled(sklearn_table("diabetes", seed), targets=True)
    data = (x, y[:, None], x_val, y_val[:, None])
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    batch, epochs = (1, 3) if fault else (32, 12)
    return tutorial(net, optimizer, nn.MSELoss(), data, epochs, batch=batch, metric=r2)


@case("CST114", dose="severe", data="tabular", net="linear", accept=("CST102", "CST201"))
@posted
def powers_of_x_by_plain_descent(seed, fault):
    """y = sin(x) by a polynomial of third degree, as in the first page of every tutorial."""
    x = torch.linspace(-3.1416, 3.1416, 400)[:, None]
    p = x ** torch.tensor([1.0, 2, 3])
    y = torch.sin(x)
    net = nn.Linear(3, 1)
    kind = torch.optim.SGD if fault else torch.optim.Adam
    optimizer = kind(net.parameters(), lr=2e-3 if fault else 0.05)
    for _ in range(400):
        loss = F.mse_loss(net(p), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return -F.mse_loss(net(p), y).item()


@case("CST402", dose="severe", data="tabular", net="mlp")
@posted
def two_hidden_units_for_a_spiral(seed, fault):
    net = mlp(2, 2 if fault else 48, 2 if fault else 48, 3, act=nn.Tanh)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), spiral(seed), 30)


@case("CST402", dose="mild", data="images", net="linear", accept=("CST403",))
@posted
def softmax_regression_on_stripes(seed, fault):
    """A linear model of raw pixels where the phase is random."""
    x, y, x_val, y_val = cifar(seed, 1200, noise=0.3)
    net = nn.Sequential(nn.Flatten(), nn.Linear(432, 4)) if fault else Net(3, 12, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), (x, y, x_val, y_val), 10)


@case("CST105", dose="severe", data="tabular", net="mlp")
@posted
def root_of_a_distance_that_reaches_zero(seed, fault):
    """torch.sqrt of the sum of squares: nan in backward where two rows are the same."""
    x, y, x_val, y_val = scaled(sklearn_table("iris", seed))
    net = mlp(4, 16, 8)
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    eps = 0.0 if fault else 1e-9
    for _ in range(150):
        i, j = torch.randint(len(x), (2, 32))
        a, b, same = net(x[i]), net(x[j]), (y[i] == y[j]).float()
        d = torch.sqrt(((a - b) ** 2).sum(1) + eps)
        loss = (same * d**2 + (1 - same) * F.relu(2 - d) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        nearest = torch.cdist(net(x_val).nan_to_num(), net(x).nan_to_num()).argmin(1)
    return (y[nearest] == y_val).float().mean().item()


@case("CST105", dose="severe", data="tabular", net="mlp", accept=("CST301", "CST101"))
@posted
def log_of_a_softmax_by_hand(seed, fault):
    """exp without subtracting the largest: nan after some steps, on columns as they come."""
    x, y, x_val, y_val = scaled(sklearn_table("wine", seed))
    net = mlp(13, 32, 3)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)

    def loss_of(out, y):
        if not fault:
            return F.cross_entropy(20 * out, y)
        p = torch.exp(20 * out) / torch.exp(20 * out).sum(1, keepdim=True)
        return -torch.log(p[range(len(y)), y]).mean()

    return notebook(net, optimizer, loss_of, (x, y, x_val, y_val), 200, metric=accuracy)
