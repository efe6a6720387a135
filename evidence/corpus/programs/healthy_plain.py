"""Nothing is wrong with these: the everyday ones, and tables with their quirks."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

from castalia.diagnose import watch
from evidence.corpus.cases import case
from evidence.corpus.programs._data import (
    churn,
    cifar,
    housing,
    mnist,
    rng,
    scaled,
    sklearn_table,
    spiral,
    topics,
)
from evidence.corpus.programs._loops import (
    Net,
    accuracy,
    loaders,
    mlp,
    notebook,
    posted,
    r2,
    reached,
    tutorial,
    watched,
)


@case(None, data="images", net="cnn")
@posted
def the_first_tutorial(seed, fault):
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), mnist(seed, 1347), 10)


@case(None, data="images", net="cnn")
@posted
def log_softmax_and_nll(seed, fault):
    net = Net(last=lambda x: F.log_softmax(x, dim=1))
    optimizer = torch.optim.Adadelta(net.parameters(), lr=1.0)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.7)
    return tutorial(net, optimizer, F.nll_loss, mnist(seed, 1347), 8, scheduler=schedule)


@case(None, data="images", net="cnn")
@posted
def a_frozen_backbone_that_was_trained_before(seed, fault):
    """Transfer learning done right: trained on ten digits, the head on odd and even."""
    x, y, x_val, y_val = mnist(seed, 1347)
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    tutorial(net, optimizer, nn.CrossEntropyLoss(), (x, y, x_val, y_val), 8)
    for p in net.parameters():
        p.requires_grad = False
    net.fc2 = nn.Linear(32, 2)
    optimizer = torch.optim.Adam(net.fc2.parameters(), lr=0.01)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), (x, y % 2, x_val, y_val % 2), 6)


@case(None, data="images", net="cnn")
@posted
def batch_norm_dropout_and_a_better_validation(seed, fault):
    """Validation better than training, as it should be with so much dropout."""
    net = nn.Sequential(
        *(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Dropout(0.5), nn.Linear(216, 32), nn.ReLU(), nn.Dropout(0.5)),
        nn.Linear(32, 4),
    )
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=0.01)
    return tutorial(net, optimizer, nn.CrossEntropyLoss(), cifar(seed, 900, noise=0.4), 12)


@case(None, data="tabular", net="mlp")
@posted
def rare_ones_with_pos_weight(seed, fault):
    x, y, x_val, y_val = churn(seed, 2000, rare=0.1, noise=0.3)
    net = mlp(10, 32, 1)
    criterion = nn.BCEWithLogitsLoss(pos_weight=torch.tensor([9.0]))
    data = (x, y.float()[:, None], x_val, y_val.float()[:, None])
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    return tutorial(net, optimizer, criterion, data, 12)


@case(None, data="tabular", net="mlp")
@posted
def huber_loss_and_prices_in_logarithms(seed, fault):
    x, y, x_val, y_val = housing(seed)
    y, y_val = torch.log(y / y.mean()), torch.log(y_val / y.mean())
    data = scaled((x, y, x_val, y_val))
    net = mlp(5, 48, 48, 1, act=nn.GELU)
    optimizer = torch.optim.RMSprop(net.parameters(), lr=1e-3)
    return tutorial(net, optimizer, nn.HuberLoss(), data, 25, metric=r2)


@case(None, data="tabular", net="linear")
@posted
def logistic_regression_by_full_batches(seed, fault):
    x, y, x_val, y_val = scaled(sklearn_table("breast_cancer", seed))
    w, b = nn.Parameter(torch.zeros(30)), nn.Parameter(torch.zeros(()))
    optimizer = torch.optim.SGD([w, b], lr=0.5)
    for _ in range(200):
        p = torch.sigmoid(x @ w + b)
        loss = F.binary_cross_entropy(p, y.float()) + 1e-3 * w.square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return accuracy(x_val @ w + b, y_val)


@case(None, data="tabular", net="mlp")
@watched
def four_small_batches_make_a_large_one(seed, fault):
    x, y, x_val, y_val = spiral(seed)
    net = mlp(2, 64, 64, 3)
    criterion, optimizer = nn.CrossEntropyLoss(), torch.optim.Adam(net.parameters(), lr=0.01)
    doctor = watch(net, optimizer, criterion)
    for _ in range(40):
        for i, idx in enumerate(torch.randperm(len(x)).split(15)):
            (criterion(net(x[idx]), y[idx]) / 3).backward()
            if i % 3 == 2:
                optimizer.step()
                optimizer.zero_grad()
        with torch.no_grad():
            doctor.epoch(criterion(net(x_val), y_val).item())
    return doctor, lambda: reached(net, x_val, y_val)


@case(None, data="images", net="mlp")
@posted
def brain_floats(seed, fault):
    x, y, x_val, y_val = mnist(seed, 1347)
    net = nn.Sequential(nn.Flatten(), mlp(64, 64, 10))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    for _ in range(8):
        for xb, yb in loaders((x, y, x_val, y_val))[0]:
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = F.cross_entropy(net(xb), yb)
            loss.backward()
            optimizer.step()
    return reached(net, x_val, y_val)


@case(None, data="tabular", net="mlp")
@posted
def stopped_early_with_the_best_weights_restored(seed, fault):
    x, y, x_val, y_val = churn(seed, 1200)
    net, criterion = mlp(10, 64, 64, 2), nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    best, kept, wait = float("inf"), None, 0
    for _ in range(40):
        net.train()
        for idx in torch.randperm(len(x)).split(32):
            optimizer.zero_grad()
            criterion(net(x[idx]), y[idx]).backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            valid = criterion(net(x_val), y_val).item()
        if valid < best:
            best, kept, wait = valid, copy.deepcopy(net.state_dict()), 0
        else:
            wait += 1
        if wait == 4:
            break
    net.load_state_dict(kept)
    return reached(net, x_val, y_val)


@case(None, data="tabular", net="mlp")
@posted
def five_labels_at_once(seed, fault):
    net = mlp(20, 48, 5)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    data = topics(seed, 1200)

    def metric(out, y):
        return ((out > 0) == (y > 0.5)).float().mean().item()

    return tutorial(net, optimizer, nn.BCEWithLogitsLoss(), data, 12, metric=metric)


@case(None, data="tabular", net="linear")
@posted
def a_curve_by_lbfgs(seed, fault):
    x = torch.linspace(-2, 2, 200)[:, None]
    y = torch.sin(2 * x) + 0.05 * torch.randn(200, 1, generator=rng(seed))
    net = mlp(1, 24, 1, act=nn.Tanh)
    optimizer = torch.optim.LBFGS(net.parameters(), max_iter=10)

    def closure():
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        return loss

    for _ in range(15):
        optimizer.step(closure)
    return r2(net(x).detach(), y)


@case(None, data="tabular", net="mlp")
@posted
def noise_that_nobody_can_predict(seed, fault):
    """A regression of which six tenths are noise: an R² near 0.4 is all there is."""
    g = rng(seed)
    x = torch.randn(1500, 6, generator=g)
    y = x[:, :1] * x[:, 1:2] * 0.5 + 0.3 * x[:, 2:3] + 0.75 * torch.randn(1500, 1, generator=g)
    net = mlp(6, 24, 1)
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=0.05)
    data = (x[:1100], y[:1100], x[1100:], y[1100:])
    return tutorial(net, optimizer, nn.MSELoss(), data, 15, metric=r2)


@case(None, data="tabular", net="mlp")
@posted
def plateau_scheduler_and_gradient_clipping(seed, fault):
    x, y, x_val, y_val = scaled(housing(seed, 900), targets=True)
    net = mlp(5, 48, 48, 1, act=nn.SiLU)
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.3, patience=2)
    for _ in range(25):
        net.train()
        for xb, yb in loaders((x, y, x_val, y_val))[0]:
            optimizer.zero_grad()
            F.mse_loss(net(xb), yb).backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
        net.eval()
        with torch.no_grad():
            schedule.step(F.mse_loss(net(x_val), y_val))
    return reached(net, x_val, y_val, r2)


@case(None, data="images", net="mlp")
@posted
def one_network_per_fold(seed, fault):
    x, y, _, _ = scaled(sklearn_table("wine", seed))
    scores = []
    for fold in range(3):
        held = torch.arange(len(x)) % 3 == fold
        net = mlp(13, 16, 3)
        optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
        data = (x[~held], y[~held], x[held], y[held])
        scores.append(tutorial(net, optimizer, nn.CrossEntropyLoss(), data, 15, batch=16))
    return sum(scores) / 3


@case(None, data="images", net="mlp")
@posted
def mixup_and_smoothed_labels(seed, fault):
    x, y, x_val, y_val = mnist(seed, 1347)
    net = nn.Sequential(nn.Flatten(), mlp(64, 64, 64, 10))
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    for _ in range(12):
        for xb, yb in loaders((x, y, x_val, y_val))[0]:
            lam, other = torch.distributions.Beta(0.3, 0.3).sample(), torch.randperm(len(xb))
            out = net(lam * xb + (1 - lam) * xb[other])
            loss = lam * criterion(out, yb) + (1 - lam) * criterion(out, yb[other])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return reached(net, x_val, y_val)


@case(None, data="tabular", net="embedding")
@posted
def ratings_by_factors_of_users_and_films(seed, fault):
    g = rng(seed)
    u, v = torch.randn(60, 3, generator=g), torch.randn(40, 3, generator=g)
    i, j = torch.randint(60, (2400,), generator=g), torch.randint(40, (2400,), generator=g)
    r = 3.5 + (u[i] * v[j]).sum(1) / 2 + 0.2 * torch.randn(2400, generator=g)

    class Factors(nn.Module):
        def __init__(self):
            super().__init__()
            self.user, self.film = nn.Embedding(60, 4), nn.Embedding(40, 4)
            nn.init.normal_(self.user.weight, std=0.3)
            nn.init.normal_(self.film.weight, std=0.3)
            self.mean = nn.Parameter(torch.tensor(3.0))

        def forward(self, ij):
            return (self.user(ij[:, 0]) * self.film(ij[:, 1])).sum(1) + self.mean

    ij, net = torch.stack([i, j], 1), Factors()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
    data = (ij[:2000], r[:2000], ij[2000:], r[2000:])
    return notebook(net, optimizer, F.mse_loss, data, 600, 64, metric=r2)
