"""Outputs, losses and shapes that do not belong together."""

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim import SGD, Adam

from evidence.corpus.cases import case
from evidence.corpus.programs._data import churn, mnist, rng, series, spiral
from evidence.corpus.programs._loops import (
    Net,
    Recurrent,
    accuracy,
    mlp,
    notebook,
    posted,
    r2,
    tutorial,
)
from evidence.corpus.tutorials._data import (
    activities,
    bookings,
    glyphs,
    messages,
    rings,
    scenes,
    stars,
    tags,
    tidy_concrete,
    verses,
    wiggle,
)
from evidence.corpus.tutorials._loops import ConvNet, Decoder, by_steps, hits, per_letter
from evidence.corpus.tutorials.healthy_images import Variational, elbo


@case("CST301", dose="severe", data="signals", net="cnn", accept=())
@posted
def softmax_in_the_last_line_of_forward(seed, fault):
    class Softly(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.fc = nn.Conv1d(3, 16, 5), nn.Linear(16 * 28, 4)

        def forward(self, x):
            out = self.fc(F.relu(self.conv(x)).flatten(1))
            return F.softmax(out, dim=-1) if fault else out

    net = Softly()
    optimizer = SGD(net.parameters(), 0.05, momentum=0.5)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), activities(seed), 15)


@case("CST301", dose="mild", data="images", net="mlp", accept=())
@posted
def relu_behind_the_logits(seed, fault):
    net = nn.Sequential(nn.Flatten(), mlp(64, 48, 10), nn.ReLU() if fault else nn.Identity())
    optimizer = SGD(net.parameters(), 0.05, momentum=0.9)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), mnist(seed), 8)


@case("CST301", dose="severe", data="tabular", net="mlp", accept=("CST402",))
@posted
def a_sigmoid_on_standardised_strength(seed, fault):
    net = nn.Sequential(mlp(8, 48, 1), nn.Sigmoid() if fault else nn.Identity())
    optimizer = Adam(net.parameters(), 5e-3)
    return tutorial(net, optimizer, nn.MSELoss(), tidy_concrete(seed), 15, metric=r2)


@case("CST301", dose="severe", data="tabular", net="mlp", accept=("CST302",))
@posted
def logits_into_the_negative_likelihood(seed, fault):
    """NLLLoss without log_softmax: the loss falls below zero and on."""
    net = mlp(2, 32, 3)
    loss = nn.NLLLoss() if fault else nn.CrossEntropyLoss()
    return tutorial(net, Adam(net.parameters(), 0.01), loss, spiral(seed), 20)


@case("CST301", dose="severe", data="tabular", net="mlp", accept=("CST302", "CST105"))
@posted
def counts_whose_log_is_taken_for_a_rate(seed, fault):
    """PoissonNLLLoss(log_input=False) on outputs that may be negative."""
    net = nn.Sequential(mlp(6, 32, 1), nn.Flatten(0), nn.ReLU() if fault else nn.Identity())
    loss = nn.PoissonNLLLoss(log_input=not fault)
    metric = lambda o, y: r2(o if fault else o.exp(), y)  # noqa: E731
    data = bookings(seed)
    return tutorial(net, SGD(net.parameters(), 0.02), loss, data, 10, metric=metric)


@case("CST302", dose="severe", data="tabular", net="mlp", accept=())
@posted
def the_number_of_the_class_as_a_quantity(seed, fault):
    x, y, x_val, y_val = spiral(seed)
    if not fault:
        net = mlp(2, 32, 3)
        data = (x, y, x_val, y_val)
        return tutorial(net, Adam(net.parameters(), 0.01), nn.CrossEntropyLoss(), data, 20)
    net = mlp(2, 32, 1)
    data = (x, y.float()[:, None], x_val, y_val.float()[:, None])
    metric = lambda o, y: (o.round() == y).float().mean().item()  # noqa: E731
    return tutorial(net, Adam(net.parameters(), 0.01), nn.MSELoss(), data, 20, metric=metric)


@case("CST302", dose="mild", data="text", net="mlp", accept=("CST301",))
@posted
def one_against_all_for_topics(seed, fault):
    """BCE over one-hot rows of exclusive classes."""
    x, y, x_val, y_val = messages(seed, 900)
    bag = lambda t: F.one_hot(t, 60).sum(1).float()  # noqa: E731
    hot = (lambda t: F.one_hot(t, 4).float()) if fault else (lambda t: t)
    net = mlp(60, 32, 4)
    loss = nn.BCEWithLogitsLoss() if fault else nn.CrossEntropyLoss()
    metric = lambda o, t: (o.argmax(1) == (t.argmax(1) if fault else t)).float().mean().item()  # noqa: E731
    data = (bag(x), hot(y), bag(x_val), hot(y_val))
    return tutorial(net, SGD(net.parameters(), 0.05), loss, data, 10, metric=metric)


@case("CST302", dose="severe", data="tabular", net="mlp", accept=("CST301",))
@posted
def absolute_error_on_yes_and_no(seed, fault):
    x, y, x_val, y_val = churn(seed, rare=0.3)
    net = nn.Sequential(mlp(10, 32, 1), nn.Sigmoid() if fault else nn.Identity())
    loss = nn.L1Loss() if fault else nn.BCEWithLogitsLoss()
    metric = lambda o, y: accuracy(o - 0.5 if fault else o, y)  # noqa: E731
    data = (x, y.float()[:, None], x_val, y_val.float()[:, None])
    return tutorial(net, SGD(net.parameters(), 0.2), loss, data, 15, metric=metric)


@case("CST303", dose="severe", data="tabular", net="mlp", accept=("CST402",))
@posted
def four_linear_layers_for_rings(seed, fault):
    act = nn.Identity if fault else nn.ReLU
    net = mlp(2, 32, 32, 32, 2, act=act)
    return tutorial(net, Adam(net.parameters(), 5e-3), nn.CrossEntropyLoss(), rings(seed), 12)


@case("CST303", dose="mild", data="images", net="cnn", accept=("CST402",))
@posted
def convolutions_with_nothing_between(seed, fault):
    class Bare(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(1, 8, 3, 2, 1)
            self.conv2 = nn.Conv2d(8, 16, 3, 2, 1)
            self.fc1, self.fc2 = nn.Linear(256, 32), nn.Linear(32, 3)

        def forward(self, x):
            act = (lambda t: t) if fault else F.relu
            return self.fc2(act(self.fc1(act(self.conv2(act(self.conv1(x)))).flatten(1))))

    x, kind, _, _ = scenes(seed, 900)
    net = Bare()
    data = (x[:700], kind[:700], x[700:], kind[700:])
    return tutorial(net, Adam(net.parameters(), 3e-3), nn.CrossEntropyLoss(), data, 14)


@case("CST304", dose="severe", data="time series", net="lstm", accept=())
@posted
def a_column_against_a_row(seed, fault):
    x, y, x_val, y_val = series(seed)
    net = Recurrent(nn.LSTM, 1, 24, 1)
    data = (x, y[:, 0] if fault else y, x_val, y_val[:, 0] if fault else y_val)
    optimizer = Adam(net.parameters(), 0.01)
    return tutorial(net, optimizer, nn.MSELoss(), data, 8, metric=r2)


@case("CST304", dose="severe", data="tabular", net="mlp", accept=())
@posted
def pinball_of_a_square(seed, fault):
    """The quantile loss is written out; y is (N,), the output (N, 1)."""
    x, y, x_val, y_val = wiggle(seed)
    y, y_val = (y[:, 0], y_val[:, 0]) if fault else (y, y_val)
    net = mlp(1, 32, 32, 1)

    def loss_of(out, y):
        gap = y - out
        return torch.maximum(0.5 * gap, -0.5 * gap).mean()

    data = (x, y, x_val, y_val)
    return notebook(net, Adam(net.parameters(), 5e-3), loss_of, data, 300, metric=r2)


@case("CST305", dose="severe", data="tabular", net="mlp", accept=("CST301",))
@posted
def shares_over_the_batch(seed, fault):
    net = mlp(2, 32, 3)

    def loss_of(out, y):
        return F.nll_loss(F.log_softmax(out, dim=0 if fault else 1), y)

    return by_steps(net, Adam(net.parameters(), 0.01), loss_of, spiral(seed), 300)


@case("CST305", dose="severe", data="text", net="attention", accept=())
@posted
def attention_over_the_batch(seed, fault):
    class Looks(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.score = nn.Embedding(60, 24), nn.Linear(24, 1)
            self.fc, self.soft = nn.Linear(24, 4), nn.Softmax(dim=0 if fault else 1)

        def forward(self, x):
            h = self.embed(x)
            return self.fc((self.soft(self.score(h)) * h).sum(1))

    net = Looks()
    optimizer = Adam(net.parameters(), 3e-3, weight_decay=1e-3)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), messages(seed, 900), 10)


@case("CST306", dose="mild", data="images", net="cnn", accept=())
@posted
def a_thousand_outputs_for_ten_digits(seed, fault):
    net = ConvNet(1000 if fault else 10)
    optimizer = SGD(net.parameters(), 0.02)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), glyphs(seed), 5)


@case("CST405", dose="severe", data="images", net="mlp", accept=("CST401",))
@posted
def logits_multiplied_by_twelve(seed, fault):
    """A temperature of one twelfth in forward: hardly less right, much too sure."""
    x, y, x_val, y_val = stars(seed, 900)
    net = mlp(6, 48, 5)

    class Sharp(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net

        def forward(self, x):
            out = self.net(x)
            return out if self.training or not fault else 12 * out

    model = Sharp()
    data = (x, y, x_val, y_val)
    tutorial(model, Adam(net.parameters(), 3e-3), nn.CrossEntropyLoss(), data, 15)
    with torch.no_grad():
        return -F.cross_entropy(model(x_val), y_val).item()


@case("CST503", dose="severe", data="images", net="vae", accept=())
@posted
def a_divergence_weighted_by_thirty(seed, fault):
    x, _, x_val, _ = mnist(seed, 900)
    x, x_val = x.flatten(1), x_val.flatten(1)
    net = Variational()
    loss_of = lambda o, t: elbo(o, t, 30.0 if fault else 1.0)  # noqa: E731
    metric = lambda o, y: -F.binary_cross_entropy_with_logits(o[0], y).item()  # noqa: E731
    data = (x, x, x_val, x_val)
    return tutorial(net, Adam(net.parameters(), 2e-3), loss_of, data, 14, metric=metric)


@case("CST504", dose="severe", data="text", net="transformer", accept=())
@posted
def most_of_the_page_is_blank(seed, fault):
    """Lines of four to ten letters padded to 32; the loss counts the padding."""
    ids, letters = verses(seed, 160)
    pieces = ids[: len(ids) // 33 * 33].view(-1, 33) + 1
    long = torch.randint(4, 11, (len(pieces), 1), generator=rng(seed))
    pieces = torch.where(torch.arange(33) < long, pieces, 0)
    train, test = pieces[:-40], pieces[-40:]
    net = Decoder(letters + 1, 32)

    def loss_of(out, y):
        skip = -100 if fault else 0
        return F.cross_entropy(out.flatten(0, 1), y.flatten(), ignore_index=skip)

    def metric(out, y):
        return hits(out[y > 0], y[y > 0])

    data = (train[:, :-1], train[:, 1:], test[:, :-1], test[:, 1:])
    return by_steps(net, Adam(net.parameters(), 3e-3), loss_of, data, 120, 24, 40, metric)


@case("CST505", dose="severe", data="text", net="transformer", accept=("CST206",))
@posted
def a_language_model_without_its_mask(seed, fault):
    """Scored with the future blanked out, as when it writes."""
    ids, letters = verses(seed, 300)
    pieces = ids[: len(ids) // 25 * 25].view(-1, 25)
    train, test = pieces[:-50], pieces[-50:]
    net = Decoder(letters, 24, causal=not fault)
    data = (train[:, :-1], train[:, 1:], test[:, :-1], test[:, 1:])
    by_steps(net, Adam(net.parameters(), 4e-3), per_letter, data, 160, 24, 40, hits)
    blank = test[:, :-1].clone()
    blank[:, 12:] = 0
    with torch.no_grad():
        return hits(net(blank)[:, 11], test[:, 12])


@case("CST302", dose="mild", data="tabular", net="mlp", accept=("CST301", "CST305"))
@posted
def softmax_over_labels_that_may_all_hold(seed, fault):
    x, y, x_val, y_val = tags(seed, 900)
    net = mlp(16, 48, 6)

    def loss_of(out, y):
        if fault:
            return F.cross_entropy(out, y)
        return F.binary_cross_entropy_with_logits(out, y)

    def metric(out, y):
        out = out.softmax(1) - 0.5 if fault else out
        return ((out > 0) == (y > 0)).float().mean().item()

    data = (x, y, x_val, y_val)
    return by_steps(net, Adam(net.parameters(), 5e-3), loss_of, data, 350, metric=metric)


@case("CST301", dose="mild", data="tabular", net="mlp", accept=("CST402", "CST106"))
@posted
def relu_on_angles_around_zero(seed, fault):
    """Targets between minus and plus pi, an output that cannot be negative."""
    g = rng(seed)
    x = torch.randn(700, 2, generator=g)
    y = torch.atan2(x[:, :1], 0.3 + x[:, 1:].abs()) * 2 / math.pi * 2
    net = nn.Sequential(mlp(2, 48, 1), nn.ReLU() if fault else nn.Identity())
    data = (x[:500], y[:500], x[500:], y[500:])
    return tutorial(net, Adam(net.parameters(), 5e-3), nn.MSELoss(), data, 12, metric=r2)


@case("CST301", dose="severe", data="images", net="cnn", accept=("CST302", "CST105"))
@posted
def cross_entropy_of_log_probabilities_by_hand(seed, fault):
    """nll_loss on softmax, not on its logarithm: it falls to minus one."""
    net = Net(size=12, last=lambda t: t.softmax(1) if fault else t.log_softmax(1))
    optimizer = SGD(net.parameters(), 0.1, momentum=0.5)
    return tutorial(net, optimizer, F.nll_loss, glyphs(seed), 8)
