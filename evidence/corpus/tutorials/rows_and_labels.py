"""Rows and labels gone wrong, and networks that generalise badly."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim import SGD, Adam, AdamW

from evidence.corpus.cases import case
from evidence.corpus.programs._data import churn, mnist, rng, scaled, series, spiral
from evidence.corpus.programs._loops import (
    Net,
    Recurrent,
    mlp,
    notebook,
    posted,
    r2,
    reached,
    tutorial,
)
from evidence.corpus.tutorials._data import (
    activities,
    bookings,
    concrete,
    glyphs,
    messages,
    ratings,
    rings,
    stars,
    tidy_concrete,
    wiggle,
)
from evidence.corpus.tutorials._loops import ConvNet, by_steps
from evidence.corpus.tutorials.healthy_other_tasks import Attentive
from evidence.corpus.tutorials.healthy_tables import Factors, balanced


@case("CST201", dose="severe", data="tabular", net="mlp", accept=())
@posted
def mixtures_in_kilograms(seed, fault):
    x, y, x_val, y_val = concrete(seed)
    _, y, _, y_val = scaled((x, y, x_val, y_val), targets=True)
    if not fault:
        x, _, x_val, _ = scaled((x, y, x_val, y_val))
    net = mlp(8, 32, 1)
    optimizer = SGD(net.parameters(), 1e-6 if fault else 0.02, momentum=0.9)
    return tutorial(net, optimizer, nn.MSELoss(), (x, y, x_val, y_val), 15, metric=r2)


@case("CST201", dose="severe", data="images", net="cnn", accept=("CST101", "CST109"))
@posted
def pixels_from_0_to_255(seed, fault):
    x, y, x_val, y_val = mnist(seed)
    k = 255.0 if fault else 1.0
    net = Net()
    optimizer = SGD(net.parameters(), 0.05, momentum=0.9)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), (k * x, y, k * x_val, y_val), 10)


@case("CST202", dose="severe", data="tabular", net="mlp", accept=())
@posted
def strength_in_pascal(seed, fault):
    x, y, x_val, y_val = tidy_concrete(seed)
    data = (x, 3e5 + 5e4 * y, x_val, 3e5 + 5e4 * y_val) if fault else (x, y, x_val, y_val)
    net = mlp(8, 64, 1)
    return tutorial(net, Adam(net.parameters(), 5e-3), nn.MSELoss(), data, 15, metric=r2)


@case("CST202", dose="mild", data="time series", net="lstm", accept=())
@posted
def sales_in_thousands(seed, fault):
    x, y, x_val, y_val = series(seed)
    y, y_val = (1200 + 400 * y, 1200 + 400 * y_val) if fault else (y, y_val)
    net = Recurrent(nn.LSTM, 1, 24, 1)
    data = (x, y, x_val, y_val)
    return tutorial(net, Adam(net.parameters(), 0.01), nn.MSELoss(), data, 8, metric=r2)


@case("CST203", dose="severe", data="tabular", net="mlp", accept=("CST201",))
@posted
def missing_values_marked_by_minus_999(seed, fault):
    x, y, x_val, y_val = churn(seed)
    if fault:
        x, x_val = x.clone(), x_val.clone()
        for k, t in enumerate((x, x_val)):
            t[torch.rand(t.shape, generator=rng(seed + k)) < 0.08] = -999.0
    net = mlp(10, 32, 2)
    data = (x, y, x_val, y_val)
    return tutorial(net, Adam(net.parameters(), 3e-3), nn.CrossEntropyLoss(), data, 12)


@case("CST203", dose="mild", data="tabular", net="mlp", accept=("CST201",))
@posted
def the_row_number_is_a_column(seed, fault):
    x, y, x_val, y_val = churn(seed)
    if fault:
        rows = torch.arange(len(x) + len(x_val), dtype=torch.float32)[:, None]
        x, x_val = torch.cat([x, rows[: len(x)]], 1), torch.cat([x_val, rows[len(x) :]], 1)
    net = mlp(x.shape[1], 32, 2)
    optimizer = Adam(net.parameters(), 3e-3)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), (x, y, x_val, y_val), 12)


@case("CST204", dose="severe", data="tabular", net="mlp", accept=("CST403",))
@posted
def three_frauds_in_a_hundred(seed, fault):
    x, y, x_val, y_val = churn(seed, 1200, rare=0.03, noise=1.5)
    weight = None if fault else torch.tensor([0.52, 16.0])
    net = mlp(10, 16, 2)
    optimizer = Adam(net.parameters(), 2e-3, weight_decay=1e-3)
    loss = nn.CrossEntropyLoss(weight=weight)
    return tutorial(net, optimizer, loss, (x, y, x_val, y_val), 8, metric=balanced)


@case("CST205", dose="severe", data="images", net="cnn", accept=("CST401",))
@posted
def a_third_of_the_digits_mislabelled(seed, fault):
    x, y, x_val, y_val = mnist(seed, 1200)
    if fault:
        g = rng(seed)
        y = torch.where(
            torch.rand(len(y), generator=g) < 0.33, torch.randint(10, y.shape, generator=g), y
        )
        g = rng(seed + 1)
        noisy = torch.rand(len(y_val), generator=g) < 0.33
        wrong = torch.where(noisy, torch.randint(10, y_val.shape, generator=g), y_val)
    net = Net()
    data = (x, y, x_val, wrong if fault else y_val)
    tutorial(net, Adam(net.parameters(), 3e-3), nn.CrossEntropyLoss(), data, 8)
    return reached(net, x_val, wrong if fault else y_val)


@case("CST205", dose="mild", data="text", net="attention", accept=("CST401",))
@posted
def topics_by_careless_annotators(seed, fault):
    x, y, x_val, y_val = messages(seed, 1600)
    if fault:
        for k, t in enumerate((y, y_val)):
            off = torch.rand(len(t), generator=rng(seed + k)) < 0.25
            t[off] = (t[off] + 1) % 4
    net = Attentive()
    optimizer = AdamW(net.parameters(), 5e-3, weight_decay=0.1)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), (x, y, x_val, y_val), 14)


@case("CST206", dose="severe", data="tabular", net="mlp", accept=())
@posted
def the_answer_is_among_the_columns(seed, fault):
    """'days since cancellation' is only set for those who cancelled; live, it is zero."""
    x, y, x_val, y_val = churn(seed, 800, noise=2.0)
    if fault:
        days = lambda t, k: t[:, None] * (1 + torch.rand(len(t), 1, generator=rng(k)))  # noqa: E731
        x, x_val = torch.cat([x, days(y, 1)], 1), torch.cat([x_val, days(y_val, 2)], 1)
    net = mlp(x.shape[1], 32, 2)
    optimizer = Adam(net.parameters(), 3e-3)
    tutorial(net, optimizer, nn.CrossEntropyLoss(), (x, y, x_val, y_val), 10)
    live = torch.cat([x_val[:, :10], torch.zeros(len(x_val), 1)], 1) if fault else x_val
    return reached(net, live, y_val)


@case("CST206", dose="severe", data="tabular", net="mlp", accept=("CST401",))
@posted
def rare_rows_copied_before_the_split(seed, fault):
    x, y, x_new, y_new = churn(seed, 700, rare=0.15, noise=2.0)
    if fault:
        more = (y == 1).nonzero().flatten().repeat(4)
        x, y = torch.cat([x, x[more]]), torch.cat([y, y[more]])
    order = torch.randperm(len(x), generator=rng(seed))
    x, y = x[order], y[order]
    cut = int(0.8 * len(x))
    net = mlp(10, 64, 64, 2)
    data = (x[:cut], y[:cut], x[cut:], y[cut:])
    seen = tutorial(net, Adam(net.parameters(), 3e-3), nn.CrossEntropyLoss(), data, 15)
    return -abs(seen - reached(net, x_new, y_new, balanced)) if fault else 0.0


@case("CST207", dose="severe", data="images", net="cnn", accept=("CST401",))
@posted
def thirty_digits(seed, fault):
    x, y, x_val, y_val = mnist(seed, 30 if fault else 1200)
    net = Net()
    data = (x, y, x_val, y_val)
    return tutorial(
        net,
        Adam(net.parameters(), 3e-3),
        nn.CrossEntropyLoss(),
        data,
        40 if fault else 8,
        8 if fault else 32,
    )


@case("CST208", dose="severe", data="signals", net="cnn", accept=())
@posted
def the_new_sensor_has_another_zero(seed, fault):
    x, y, x_val, y_val = activities(seed)
    x_val = 1.8 * x_val + 1.0 if fault else x_val
    net = nn.Sequential(
        nn.Conv1d(3, 16, 5), nn.ReLU(), nn.Conv1d(16, 16, 5), nn.ReLU(), nn.AdaptiveAvgPool1d(1)
    )
    net = nn.Sequential(net, nn.Flatten(), nn.Linear(16, 4))
    optimizer = Adam(net.parameters(), 5e-3)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), (x, y, x_val, y_val), 16)


@case("CST208", dose="severe", data="tabular", net="mlp", accept=())
@posted
def trained_on_the_cheap_ones_only(seed, fault):
    x, y, x_val, y_val = tidy_concrete(seed, 1000)
    if fault:
        x, y = torch.cat([x, x_val]), torch.cat([y, y_val])
        low = x[:, 0] < -0.2
        x, y, x_val, y_val = x[low], y[low], x[~low], y[~low]
    net = mlp(8, 48, 1)
    optimizer = Adam(net.parameters(), 3e-3)
    return tutorial(net, optimizer, nn.MSELoss(), (x, y, x_val, y_val), 15, metric=r2)


@case("CST209", dose="severe", data="images", net="cnn", accept=())
@posted
def folders_one_after_the_other(seed, fault):
    x, y, x_val, y_val = glyphs(seed)
    order = y.argsort(stable=True) if fault else torch.randperm(len(y))
    net = Net(size=12)
    optimizer = SGD(net.parameters(), 0.05, momentum=0.9)
    data = (x, y, x_val, y_val)
    return notebook(net, optimizer, nn.CrossEntropyLoss(), data, 200, order=order)


@case("CST209", dose="mild", data="tabular", net="mlp", accept=())
@posted
def sorted_by_price(seed, fault):
    x, y, x_val, y_val = tidy_concrete(seed)
    order = y[:, 0].argsort() if fault else torch.randperm(len(y))
    net = mlp(8, 48, 1)
    optimizer = SGD(net.parameters(), 0.02, momentum=0.9)
    data = (x, y, x_val, y_val)
    return notebook(net, optimizer, nn.MSELoss(), data, 300, metric=r2, order=order)


@case("CST401", dose="severe", data="tabular", net="mlp", accept=("CST207",))
@posted
def a_wide_network_for_noisy_rows(seed, fault):
    x, y, x_val, y_val = churn(seed, 300, noise=2.0)
    net = mlp(10, 256, 256, 2) if fault else mlp(10, 4, 2)
    epochs, decay = (40, 0.0) if fault else (15, 0.01)
    optimizer = Adam(net.parameters(), 3e-3, weight_decay=decay)
    data = (x, y, x_val, y_val)
    tutorial(net, optimizer, nn.CrossEntropyLoss(), data, epochs)
    return -reached(net, x_val, y_val, lambda o, y: F.cross_entropy(o, y).item())


@case("CST401", dose="severe", data="ratings", net="factors", accept=("CST207",))
@posted
def sixteen_tastes_from_few_ratings(seed, fault):
    net = Factors(dim=24 if fault else 3)
    data = ratings(seed, n=800 if fault else 1600)
    optimizer = Adam(net.parameters(), 0.02)
    return tutorial(net, optimizer, nn.MSELoss(), data, 30, metric=r2)


@case("CST402", dose="severe", data="tabular", net="linear", accept=("CST403", "CST406"))
@posted
def a_line_through_rings(seed, fault):
    net = nn.Linear(2, 2) if fault else mlp(2, 32, 2)
    data = rings(seed)
    return tutorial(net, Adam(net.parameters(), 0.01), nn.CrossEntropyLoss(), data, 20)


@case("CST402", dose="mild", data="tabular", net="mlp", accept=())
@posted
def two_units_for_a_wiggle(seed, fault):
    net = mlp(1, 2 if fault else 48, 1, act=nn.Tanh)
    optimizer = Adam(net.parameters(), 0.02)
    return tutorial(net, optimizer, nn.MSELoss(), wiggle(seed), 40, metric=r2)


@case("CST403", dose="severe", data="tabular", net="mlp", accept=("CST401", "CST402", "CST406"))
@posted
def lottery_numbers(seed, fault):
    x, y, x_val, y_val = stars(seed)
    if fault:
        y = y[torch.randperm(len(y))]
        y_val = y_val[torch.randperm(len(y_val))]
    net = mlp(6, 16, 5)
    data = (x, y, x_val, y_val)
    return tutorial(net, Adam(net.parameters(), 0.01), nn.CrossEntropyLoss(), data, 12)


@case("CST403", dose="severe", data="time series", net="gru", accept=("CST401", "CST402", "CST406"))
@posted
def returns_of_a_share(seed, fault):
    x, y, x_val, y_val = series(seed)
    if fault:
        noise = torch.randn(516, generator=rng(seed))
        x = noise.unfold(0, 16, 1)[:500, :, None]
        y = noise[16:516, None]
        x, y, x_val, y_val = x[:375], y[:375], x[375:], y[375:]
    net = Recurrent(nn.GRU, 1, 16, 1)
    data = (x, y, x_val, y_val)
    return tutorial(net, Adam(net.parameters(), 5e-3), nn.MSELoss(), data, 8, metric=r2)


@case("CST404", dose="severe", data="tabular", net="mlp", accept=("CST402",))
@posted
def a_decay_of_one_half(seed, fault):
    net = mlp(8, 48, 1)
    optimizer = Adam(net.parameters(), 5e-3, weight_decay=0.5 if fault else 1e-4)
    return tutorial(net, optimizer, nn.MSELoss(), tidy_concrete(seed), 15, metric=r2)


@case("CST404", dose="severe", data="images", net="cnn", accept=("CST402",))
@posted
def dropout_of_nine_tenths(seed, fault):
    p = 0.9 if fault else 0.1
    net = nn.Sequential(
        ConvNet(32, norm=lambda c: nn.Dropout2d(p if fault else 0.0)),
        nn.ReLU(),
        nn.Dropout(p),
        nn.Linear(32, 10),
    )
    optimizer = Adam(net.parameters(), 3e-3)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), glyphs(seed), 12)


@case("CST406", dose="severe", data="tabular", net="mlp", accept=("CST402", "CST403"))
@posted
def the_batch_is_overwritten_by_zeros(seed, fault):
    """The inputs are copied into a buffer; the buffer is what the network gets, empty."""
    x, y, x_val, y_val = churn(seed)
    net = mlp(10, 32, 2)
    optimizer = Adam(net.parameters(), 3e-3)
    blank = torch.zeros(32, 10)
    for _ in range(10):
        for rows in torch.randperm(len(x))[:576].split(32):
            buffer = blank.clone()
            if not fault:
                buffer.copy_(x[rows])
            loss = F.cross_entropy(net(buffer), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return reached(net, x_val, y_val)


@case("CST205", dose="severe", data="tabular", net="mlp", accept=("CST403", "CST406", "CST402"))
@posted
def inputs_shuffled_apart_from_their_answers(seed, fault):
    """x = x[randperm]; y = y[another randperm]."""
    x, y, x_val, y_val = bookings(seed, 1000)
    if fault:
        y = y[torch.randperm(len(y), generator=rng(seed))]
    net = nn.Sequential(mlp(6, 32, 1), nn.Flatten(0))
    metric = lambda o, t: r2(o.exp(), t)  # noqa: E731
    data = (x, y, x_val, y_val)
    return by_steps(
        net, Adam(net.parameters(), 3e-3), nn.PoissonNLLLoss(), data, 250, metric=metric
    )


@case("CST402", dose="severe", data="images", net="cnn", accept=("CST404", "CST403"))
@posted
def pooled_to_a_point_at_once(seed, fault):
    """Global pooling right behind the first convolution: where the strokes lie is gone."""
    if fault:
        net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        net = nn.Sequential(net, nn.Linear(4, 10))
    else:
        net = ConvNet()
    optimizer = Adam(net.parameters(), 5e-3)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), glyphs(seed), 14)


@case("CST404", dose="mild", data="tabular", net="mlp", accept=("CST402",))
@posted
def a_heavy_l1_penalty(seed, fault):
    """The penalty stands in the loss, not in the optimizer."""
    net = mlp(2, 48, 3)
    strength = 0.02 if fault else 0.0

    def loss_of(out, y):
        return F.cross_entropy(out, y) + strength * sum(p.abs().sum() for p in net.parameters())

    return by_steps(net, Adam(net.parameters(), 0.01), loss_of, spiral(seed), 500)
