"""Tables and curves, fitted as they should be."""

import copy

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim import SGD, Adam, AdamW, RMSprop
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

from evidence.corpus.cases import case
from evidence.corpus.programs._data import churn, halves, rng, scaled, sklearn_table
from evidence.corpus.programs._loops import loaders, mlp, notebook, posted, r2, tutorial
from evidence.corpus.tutorials._data import (
    bookings,
    customers,
    lifetimes,
    ratings,
    rings,
    stars,
    tags,
    tidy_concrete,
    two_branches,
    wiggle,
)
from evidence.corpus.tutorials._loops import Shopper, by_steps, whole


@case(None, data="tabular", net="mlp")
@posted
def strength_of_concrete(seed, fault):
    net = mlp(8, 64, 32, 1)
    return tutorial(
        net, Adam(net.parameters(), 3e-3), nn.MSELoss(), tidy_concrete(seed), 20, metric=r2
    )


@case(None, data="tabular", net="linear")
@posted
def a_straight_line(seed, fault):
    x = torch.linspace(0, 1, 100)[:, None]
    data = halves(x, 2 * x + 1 + 0.05 * torch.randn(100, 1, generator=rng(seed)), seed)
    net = nn.Linear(1, 1)
    return whole(net, SGD(net.parameters(), 0.3), nn.MSELoss(), data, 300, r2)


@case(None, data="tabular", net="polynomial")
@posted
def a_cubic_by_hand(seed, fault):
    """Four parameters, no module anywhere."""
    x, y, x_val, y_val = wiggle(seed)
    powers = torch.cat([x**k for k in range(6)], 1)
    w = torch.zeros(6, 1, requires_grad=True)
    optimizer = Adam([w], lr=0.1)
    for _ in range(400):
        loss = ((powers @ w - y) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return r2(torch.cat([x_val**k for k in range(6)], 1) @ w.detach(), y_val)


@case(None, data="tabular", net="linear")
@posted
def logistic_regression_on_tumours(seed, fault):
    x, y, x_val, y_val = scaled(sklearn_table("breast_cancer", seed))
    net = nn.Linear(30, 1)
    data = (x, y.float()[:, None], x_val, y_val.float()[:, None])
    optimizer = SGD(net.parameters(), 0.1, weight_decay=1e-3)
    return tutorial(net, optimizer, nn.BCEWithLogitsLoss(), data, 20)


@case(None, data="tabular", net="mlp")
@posted
def iris_at_once(seed, fault):
    net = mlp(4, 16, 3)
    data = scaled(sklearn_table("iris", seed))
    return whole(net, Adam(net.parameters(), 0.02), nn.CrossEntropyLoss(), data, 150)


@case(None, data="tabular", net="embeddings")
@posted
def categories_are_embedded(seed, fault):
    ids, x, y, ids_val, x_val, y_val = customers(seed)
    net = Shopper()
    optimizer = AdamW(net.parameters(), 5e-3, weight_decay=0.01)
    loader = DataLoader(TensorDataset(ids, x, y), 32, shuffle=True)
    for _ in range(14):
        net.train()
        for i, a, b in loader:
            loss = F.binary_cross_entropy_with_logits(net(i, a), b)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            out = net(ids_val, x_val)
            F.binary_cross_entropy_with_logits(out, y_val)
    return ((out > 0) == (y_val > 0.5)).float().mean().item()


class Grades(nn.Module):
    """One quality, and cuts between the grades that keep their order."""

    def __init__(self):
        super().__init__()
        self.body = mlp(6, 32, 1)
        self.first, self.gaps = nn.Parameter(torch.tensor([-1.0])), nn.Parameter(torch.zeros(3))

    def forward(self, x):
        cuts = torch.cat([self.first, self.first + F.softplus(self.gaps).cumsum(0)])
        return self.body(x) - cuts


@case(None, data="tabular", net="ordinal")
@posted
def grades_in_their_order(seed, fault):
    net = Grades()

    def loss_of(out, y):
        above = (y[:, None] > torch.arange(4)).float()
        return F.binary_cross_entropy_with_logits(out, above)

    def metric(out, y):
        return ((out > 0).sum(1) == y).float().mean().item()

    return by_steps(net, Adam(net.parameters(), 0.01), loss_of, stars(seed), 1000, metric=metric)


@case(None, data="tabular", net="mlp")
@posted
def the_ninth_decile(seed, fault):
    """Pinball loss; the score is how near the share below is to 0.9."""
    net = mlp(1, 32, 32, 1)
    optimizer = Adam(net.parameters(), 5e-3)

    def loss_of(out, y):
        return torch.maximum(0.9 * (y - out), -0.1 * (y - out)).mean()

    def metric(out, y):
        return 1 - abs((y < out).float().mean().item() - 0.9)

    return by_steps(net, optimizer, loss_of, wiggle(seed, 600, 0.3), 500, metric=metric)


@case(None, data="tabular", net="survival")
@posted
def cox_by_partial_likelihood(seed, fault):
    x, y, x_val, y_val = lifetimes(seed)
    net = mlp(5, 24, 1, act=nn.Tanh)
    optimizer = Adam(net.parameters(), 5e-3, weight_decay=1e-3)

    def loss_of(out, y):
        order = y[:, 0].argsort(descending=True)
        risk, seen = out[order, 0], y[order, 1]
        return -((risk - risk.logcumsumexp(0)) * seen).sum() / seen.sum()

    def concordance(out, y):
        sooner = (y[:, None, 0] < y[None, :, 0]) & (y[:, None, 1] > 0)
        return (out[:, None, 0] > out[None, :, 0])[sooner].float().mean().item()

    return by_steps(net, optimizer, loss_of, (x, y, x_val, y_val), 250, 128, metric=concordance)


@case(None, data="tabular", net="mlp")
@posted
def six_labels_at_once(seed, fault):
    net = mlp(16, 64, 6)
    optimizer = Adam(net.parameters(), 3e-3, weight_decay=1e-4)

    def metric(out, y):
        return ((out > 0) == (y > 0)).float().mean().item()

    data = tags(seed, 1200)
    return tutorial(net, optimizer, nn.BCEWithLogitsLoss(), data, 22, metric=metric)


@case(None, data="tabular", net="mlp")
@posted
def counts_of_bookings(seed, fault):
    net = nn.Sequential(mlp(6, 32, 1), nn.Flatten(0))
    optimizer = Adam(net.parameters(), 3e-3)
    data = bookings(seed, 1200)
    return tutorial(
        net, optimizer, nn.PoissonNLLLoss(), data, 12, metric=lambda o, y: r2(o.exp(), y)
    )


def balanced(out, y):
    return sum((out[y == k].argmax(1) == k).float().mean().item() for k in (0, 1)) / 2


@case(None, data="tabular", net="mlp")
@posted
def rare_leavers_with_class_weights(seed, fault):
    net = mlp(10, 32, 2)
    data = churn(seed, 1600, rare=0.12, noise=0.3)
    loss = nn.CrossEntropyLoss(weight=torch.tensor([0.57, 4.2]))
    optimizer = Adam(net.parameters(), 5e-3, weight_decay=1e-3)
    return tutorial(net, optimizer, loss, data, 20, metric=balanced)


@case(None, data="tabular", net="mlp")
@posted
def rare_leavers_drawn_more_often(seed, fault):
    x, y, x_val, y_val = churn(seed, 1600, rare=0.12, noise=0.3)
    share = torch.bincount(y).float() / len(y)
    sampler = WeightedRandomSampler((1 / share)[y].tolist(), len(y))
    train = DataLoader(TensorDataset(x, y), 64, sampler=sampler)
    net = mlp(10, 32, 2)
    optimizer = Adam(net.parameters(), 5e-3, weight_decay=1e-3)
    for _ in range(14):
        net.train()
        for a, b in train:
            optimizer.zero_grad()
            F.cross_entropy(net(a), b).backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            out = net(x_val)
            F.cross_entropy(out, y_val)
    return balanced(out, y_val)


@case(None, data="tabular", net="mlp")
@posted
def five_folds_of_concrete(seed, fault):
    x, y, *_ = tidy_concrete(seed)
    scores = []
    for fold in range(5):
        held = torch.arange(len(x)) % 5 == fold
        net = mlp(8, 32, 1)
        data = (x[~held], y[~held], x[held], y[held])
        scores.append(
            tutorial(net, Adam(net.parameters(), 0.01), nn.MSELoss(), data, 20, metric=r2)
        )
    return sum(scores) / 5


@case(None, data="tabular", net="mlp")
@posted
def sixty_flowers_with_decay(seed, fault):
    x, y, x_val, y_val = scaled(sklearn_table("iris", seed))
    net = mlp(4, 8, 3)
    optimizer = AdamW(net.parameters(), 0.01, weight_decay=0.1)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), (x[:60], y[:60], x_val, y_val), 100, 10)


@case(None, data="tabular", net="mlp")
@posted
def large_batches_and_a_large_rate(seed, fault):
    net = mlp(2, 64, 64, 2)
    optimizer = Adam(net.parameters(), 0.01)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), rings(seed, 1200), 60, 300)


@case(None, data="tabular", net="linear")
@posted
def wine_by_lbfgs(seed, fault):
    x, y, x_val, y_val = scaled(sklearn_table("wine", seed))
    net = nn.Linear(13, 3)
    optimizer = torch.optim.LBFGS(net.parameters(), lr=0.5, max_iter=10)
    for _ in range(15):

        def closure():
            optimizer.zero_grad()
            penalty = 1e-2 * net.weight.square().sum()
            loss = F.cross_entropy(net(x), y) + penalty
            loss.backward()
            return loss

        optimizer.step(closure)
    with torch.no_grad():
        return (net(x_val).argmax(1) == y_val).float().mean().item()


@case(None, data="tabular", net="mlp")
@posted
def a_curve_in_double_precision(seed, fault):
    net = mlp(1, 32, 32, 1, act=nn.Tanh).double()
    data = tuple(t.double() for t in wiggle(seed))
    return whole(net, Adam(net.parameters(), 0.01), nn.MSELoss(), data, 500, r2)


@case(None, data="tabular", net="mlp")
@posted
def stopped_early_and_the_best_restored(seed, fault):
    x, y, x_val, y_val = churn(seed, 900)
    net = mlp(10, 64, 64, 2)
    optimizer = Adam(net.parameters(), 3e-3)
    train, test = loaders((x, y, x_val, y_val))
    best, kept, patience = 9.0, None, 0
    for _ in range(60):
        net.train()
        for a, b in train:
            optimizer.zero_grad()
            F.cross_entropy(net(a), b).backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            loss = sum(F.cross_entropy(net(a), b, reduction="sum").item() for a, b in test)
        loss /= len(x_val)
        if loss < best:
            best, kept, patience = loss, copy.deepcopy(net.state_dict()), 0
        else:
            patience += 1
        if patience == 4:
            break
    net.load_state_dict(kept)
    with torch.no_grad():
        return (net(x_val).argmax(1) == y_val).float().mean().item()


class Factors(nn.Module):
    def __init__(self, users=60, films=40, dim=4):
        super().__init__()
        self.u, self.v = nn.Embedding(users, dim), nn.Embedding(films, dim)
        nn.init.normal_(self.u.weight, std=0.3)
        nn.init.normal_(self.v.weight, std=0.3)

    def forward(self, pairs):
        return (self.u(pairs[:, 0]) * self.v(pairs[:, 1])).sum(1)


@case(None, data="ratings", net="factors")
@posted
def tastes_by_factorisation(seed, fault):
    net = Factors()
    optimizer = Adam(net.parameters(), 0.02, weight_decay=1e-4)
    return tutorial(net, optimizer, nn.MSELoss(), ratings(seed), 16, metric=r2)


class Mixture(nn.Module):
    def __init__(self, parts=3):
        super().__init__()
        self.body, self.heads = mlp(1, 32, 32), nn.Linear(32, 3 * parts)

    def forward(self, x):
        weight, mean, log_spread = self.heads(torch.tanh(self.body(x))).chunk(3, 1)
        return weight.log_softmax(1), mean, log_spread.clamp(-4, 2)


def mixture_loss(out, y):
    weight, mean, log_spread = out
    each = -0.5 * ((y - mean) / log_spread.exp()) ** 2 - log_spread - 0.919
    return -(weight + each).logsumexp(1).mean()


@case(None, data="tabular", net="mixture")
@posted
def two_answers_by_a_mixture(seed, fault):
    net = Mixture()
    optimizer = Adam(net.parameters(), 5e-3)
    metric = lambda out, y: -mixture_loss(out, y).item()  # noqa: E731
    return by_steps(net, optimizer, mixture_loss, two_branches(seed), 500, 64, metric=metric)


@case(None, data="tabular", net="mlp")
@posted
def plain_descent_with_a_stepped_rate(seed, fault):
    net = mlp(8, 64, 1)
    optimizer = SGD(net.parameters(), 0.05, momentum=0.9, nesterov=True)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 6, gamma=0.3)
    data = tidy_concrete(seed)
    return tutorial(net, optimizer, nn.MSELoss(), data, 18, metric=r2, scheduler=schedule)


@case(None, data="tabular", net="mlp")
@posted
def rmsprop_on_rings(seed, fault):
    net = mlp(2, 32, 32, 2)
    optimizer = RMSprop(net.parameters(), 2e-3)
    return notebook(net, optimizer, nn.CrossEntropyLoss(), rings(seed), 350)


@case(None, data="tabular", net="resnet")
@posted
def a_table_with_normalisation_and_dropout(seed, fault):
    net = nn.Sequential(
        nn.Linear(10, 64),
        nn.BatchNorm1d(64),
        nn.ReLU(),
        nn.Dropout(0.2),
        nn.Linear(64, 64),
        nn.BatchNorm1d(64),
        nn.ReLU(),
        nn.Linear(64, 2),
    )
    optimizer = AdamW(net.parameters(), 3e-3, weight_decay=1e-2)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), churn(seed, 1600), 12, 64)


@case(None, data="tabular", net="mlp")
@posted
def outliers_and_a_huber_loss(seed, fault):
    x, y, x_val, y_val = tidy_concrete(seed)
    wild = torch.rand(len(y), generator=rng(seed)) < 0.05
    y = torch.where(wild[:, None], y + 6, y)
    net = mlp(8, 48, 1)
    optimizer = Adam(net.parameters(), 5e-3, weight_decay=1e-3)
    return tutorial(net, optimizer, nn.HuberLoss(), (x, y, x_val, y_val), 16, metric=r2)
