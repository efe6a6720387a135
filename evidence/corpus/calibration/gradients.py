"""Gradients that vanish, explode or are not numbers: CST103, CST104, CST105."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

from castalia.diagnose import watch
from evidence.corpus.calibration import _data as data
from evidence.corpus.calibration._twins import cured
from evidence.corpus.cases import case


def accuracy(out, y):
    return (out.argmax(1) == y).float().mean().item()


# ---- CST103, vanishing gradients ----


class DeepNet(nn.Module):
    def __init__(self, depth, activation):
        super().__init__()
        self.first = nn.Linear(64, 32)
        self.hidden = nn.ModuleList([nn.Linear(32, 32) for _ in range(depth)])
        self.last = nn.Linear(32, 10)
        self.activation = activation

    def forward(self, x):
        x = self.activation(self.first(x))
        for layer in self.hidden:
            x = self.activation(layer(x))
        return self.last(x)


@case("CST103", dose="severe", data="images", net="deep mlp")
@cured(activation=F.selu)
def eight_layers_of_sigmoids(seed, activation=torch.sigmoid):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.digits(seed)
    model = DeepNet(7, activation)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    doctor = watch(model, optimizer)
    for _ in range(12):
        for xb, yb in DataLoader(TensorDataset(X, y), batch_size=64, shuffle=True):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(xb), yb)
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss)
        with torch.no_grad():
            out = model(X_val)
            doctor.epoch(F.cross_entropy(out, y_val).item(), accuracy(out, y_val))
    return doctor.diagnosis()


@case("CST103", dose="severe", data="tabular", net="deep mlp")
@cured(unit=nn.Tanh)
def sequential_sigmoids_for_regression(seed, unit=nn.Sigmoid):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.friedman(seed)
    layers = [nn.Linear(8, 24), unit()]
    for _ in range(6):
        layers += [nn.Linear(24, 24), unit()]
    model = nn.Sequential(*layers, nn.Linear(24, 1))
    criterion = nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9)
    doctor = watch(model, optimizer, criterion)
    for _ in range(250):  # full batch
        optimizer.zero_grad()
        criterion(model(X), y).backward()
        optimizer.step()
    with torch.no_grad():
        doctor.epoch(criterion(model(X_val), y_val).item())
    return doctor.diagnosis()


class SigmoidLeNet(nn.Module):
    def __init__(self, act):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            act(),
            nn.Conv2d(8, 8, 3, padding=1),
            act(),
            nn.AvgPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1),
            act(),
            nn.Conv2d(16, 16, 3, padding=1),
            act(),
            nn.AvgPool2d(2),
        )
        self.fc = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), act(), nn.Linear(32, 10))

    def forward(self, x):
        return self.fc(self.conv(x))


@case("CST103", dose="severe", data="images", net="cnn")
@cured(act=nn.Tanh)
def convolutions_with_sigmoids(seed, act=nn.Sigmoid):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.digits(seed, n=448, images=True)
    net = SigmoidLeNet(act)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    doctor = watch(net, optimizer, loss_fn=criterion)
    for _ in range(14):
        for i in range(0, len(X), 64):
            optimizer.zero_grad()
            criterion(net(X[i : i + 64]), y[i : i + 64]).backward()
            optimizer.step()
        with torch.no_grad():
            doctor.epoch(validation_score=accuracy(net(X_val), y_val))
    return doctor.diagnosis()


@case("CST103", dose="mild", data="tabular", net="mlp")
@cured(act=nn.LeakyReLU)
def three_layers_of_sigmoids(seed, act=nn.Sigmoid):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.clusters(seed, classes=4)
    model = nn.Sequential(
        nn.Linear(10, 32),
        act(),
        nn.Linear(32, 32),
        act(),
        nn.Linear(32, 32),
        act(),
        nn.Linear(32, 4),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
    doctor = watch(model, optimizer, task="multiclass")
    loader = DataLoader(TensorDataset(X, y), batch_size=32, shuffle=True)
    for _ in range(40):
        for xb, yb in loader:
            out = model(xb)
            loss = F.cross_entropy(out, yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss, out, yb)
        with torch.no_grad():
            out = model(X_val)
            doctor.epoch(F.cross_entropy(out, y_val).item(), accuracy(out, y_val))
    return doctor.diagnosis()


class FirstToken(nn.Module):
    """Says what the first value of a sequence was."""

    def __init__(self, cell, hidden=16):
        super().__init__()
        self.rnn = cell(1, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 2)

    def forward(self, x):
        h, _ = self.rnn(x)
        return self.out(h[:, -1])


def _first_sign(seed, n=300, length=40):
    g = torch.Generator().manual_seed(seed)
    X = 0.3 * torch.randn(n, length, 1, generator=g)
    y = torch.randint(2, (n,), generator=g)
    X[:, 0, 0] = 2.0 * y - 1.0
    return X[:200], y[:200], X[200:], y[200:]


def rotating(inputs, hidden, batch_first):
    """A plain net whose recurrent matrix begins as a rotation: nothing shrinks with time."""
    rnn = nn.RNN(inputs, hidden, batch_first=batch_first)
    nn.init.orthogonal_(rnn.weight_hh_l0)
    return rnn


@case("CST103", dose="severe", data="sequences", net="rnn")
@cured(cell=rotating)
def plain_rnn_asked_for_the_first_of_forty(seed, cell=nn.RNN):
    torch.manual_seed(seed)
    X, y, X_val, y_val = _first_sign(seed)
    model = FirstToken(cell)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    doctor = watch(model, optimizer, criterion)
    for _ in range(20):
        for rows in torch.randperm(200).split(50):
            optimizer.zero_grad()
            criterion(model(X[rows]), y[rows]).backward()
            optimizer.step()
        with torch.no_grad():
            out = model(X_val)
            doctor.epoch(criterion(out, y_val).item(), accuracy(out, y_val))
    return doctor.diagnosis()


# ---- CST104, exploding gradients ----


class Multiplicative(nn.Module):
    """Each layer multiplies two linear maps; outputs grow with the eighth power of the input."""

    def __init__(self, width=24):
        super().__init__()
        sizes = [6, width, width, width]
        pairs = list(zip(sizes[:-1], sizes[1:], strict=True))
        self.left = nn.ModuleList(nn.Linear(a, b) for a, b in pairs)
        self.right = nn.ModuleList(nn.Linear(a, b) for a, b in pairs)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        for left, right in zip(self.left, self.right, strict=True):
            x = left(x) * right(x)
        return self.out(x)


@case("CST104", dose="severe", data="tabular", net="multiplicative")
@cured(clip=0.5)
def products_of_products_without_clipping(seed, clip=None):
    torch.manual_seed(seed)
    g = torch.Generator().manual_seed(seed)
    X = torch.randn(1000, 6, generator=g)
    y = (X[:, :1] * X[:, 1:2] + torch.sin(X[:, 2:3])) / 1.3
    model = Multiplicative()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    doctor = watch(model, optimizer)
    for _ in range(25):
        for rows in torch.randperm(800).split(32):
            optimizer.zero_grad()
            loss = F.mse_loss(model(X[rows]), y[rows])
            loss.backward()
            if clip:
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
            doctor.log(loss=loss)
        with torch.no_grad():
            doctor.epoch(F.mse_loss(model(X[800:]), y[800:]).item())
    return doctor.diagnosis()


class ResidualStack(nn.Module):
    """Residual blocks without normalisation; every sum is larger than the one before."""

    def __init__(self, blocks=16, width=32, norm=False):
        super().__init__()
        self.inp = nn.Linear(64, width)
        self.blocks = nn.ModuleList(nn.Linear(width, width) for _ in range(blocks))
        self.norms = nn.ModuleList(
            nn.LayerNorm(width) if norm else nn.Identity() for _ in range(blocks)
        )
        self.out = nn.Linear(width, 10)
        for block in self.blocks:
            nn.init.kaiming_normal_(block.weight, nonlinearity="relu")

    def forward(self, x):
        h = self.inp(x)
        for block, norm in zip(self.blocks, self.norms, strict=True):
            h = norm(h + F.relu(block(h)))
        return self.out(h)


# Accepted as well: a scheme of initialisation that knows of the residual sum would cure it.
@case("CST104", dose="severe", data="images", net="resnet", accept=("CST109",))
@cured(norm=True)
def residual_sums_without_normalisation(seed, norm=False):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.digits(seed, n=960)
    model = ResidualStack(norm=norm)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    doctor = watch(model, optimizer, criterion)
    for _ in range(10):
        for rows in torch.randperm(len(X)).split(64):
            optimizer.zero_grad()
            criterion(model(X[rows]), y[rows]).backward()
            optimizer.step()
        with torch.no_grad():
            out = model(X_val)
            doctor.epoch(criterion(out, y_val).item(), accuracy(out, y_val))
    return doctor.diagnosis()


@case("CST104", dose="mild", data="tabular", net="mlp")
@cured(clip=1.0)
def counts_through_an_exponential(seed, clip=None):
    torch.manual_seed(seed)
    g = torch.Generator().manual_seed(seed)
    X = torch.randn(600, 6, generator=g)
    rate = torch.exp(1.0 + X[:, 0] - 0.8 * X[:, 1] + 0.7 * X[:, 2] * X[:, 3])
    y = torch.poisson(rate.clamp(max=500), generator=g)
    model = nn.Sequential(
        nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    doctor = watch(model, optimizer)
    for _ in range(25):
        for rows in torch.randperm(480).split(16):
            loss = F.poisson_nll_loss(model(X[rows]).squeeze(1), y[rows])
            optimizer.zero_grad()
            loss.backward()
            if clip is not None:
                torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
            doctor.log(loss=loss)
        with torch.no_grad():
            doctor.epoch(F.poisson_nll_loss(model(X[480:]).squeeze(1), y[480:]).item())
    return doctor.diagnosis()


class Cell(nn.Module):
    """An Elman cell written by hand; its recurrent matrix starts as an amplifying rotation."""

    def __init__(self, hidden=24, gain=1.0):
        super().__init__()
        self.inp = nn.Linear(1, hidden)
        self.rec = nn.Linear(hidden, hidden, bias=False)
        nn.init.orthogonal_(self.rec.weight, gain)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        h = torch.zeros(x.shape[0], self.rec.in_features)
        for t in range(x.shape[1]):
            h = torch.tanh(self.inp(x[:, t]) + self.rec(h))
        return self.out(h)


# Accepted as well: the amplifying start is what makes the gradient grow with time.
@case("CST104", dose="severe", data="sequences", net="rnn", accept=("CST109",))
@cured(gain=1.0)
def elman_cell_that_amplifies(seed, gain=3.0):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.echoes(seed, n=300, length=40, lag=2)
    model = Cell(gain=gain)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    doctor = watch(model, optimizer)
    for _ in range(12):
        for rows in torch.randperm(len(X)).split(42):
            optimizer.zero_grad()
            F.mse_loss(model(X[rows]), y[rows]).backward()
            optimizer.step()
        with torch.no_grad():
            doctor.epoch(F.mse_loss(model(X_val), y_val).item())
    return doctor.diagnosis()


# ---- CST105, not a number ----


@case("CST105", dose="mild", data="tabular", net="mlp")
@cured(eps=1e-7)
def own_cross_entropy_takes_the_log_of_zero(seed, eps=0.0):
    # goes well until the first probability is rounded to one: 0 * log(1 - 1) is no number
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.table("breast_cancer", seed)
    y, y_val = y.float()[:, None], y_val.float()[:, None]
    model = nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, 1), nn.Sigmoid())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    doctor = watch(model, optimizer)
    for _ in range(30):
        for rows in torch.randperm(len(X)).split(32):
            p = model(X[rows]).clamp(eps, 1 - eps)
            loss = -(y[rows] * torch.log(p) + (1 - y[rows]) * torch.log(1 - p)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            doctor.epoch(validation_score=((model(X_val) > 0.5) == y_val).float().mean().item())
    return doctor.diagnosis()


@case("CST105", dose="severe", data="tabular", net="siamese")
@cured(eps=1e-8)
def distance_of_equal_pairs(seed, eps=0.0):
    # the root of zero has no slope: one pair of equal rows makes every weight NaN
    torch.manual_seed(seed)
    X, y, _, _ = data.table("wine", seed)
    encoder = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, 8))
    optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-3)
    doctor = watch(encoder, optimizer)
    for _ in range(150):
        i, j = torch.randint(len(X), (2, 256))
        a, b = encoder(X[i]), encoder(X[j])
        distance = torch.sqrt(((a - b) ** 2).sum(1) + eps)
        same = (y[i] == y[j]).float()
        loss = (same * distance**2 + (1 - same) * F.relu(2 - distance) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        doctor.log(loss=loss)
    return doctor.diagnosis()


class ScalesItself(nn.Module):
    def __init__(self, eps):
        super().__init__()
        self.eps = eps
        self.body = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))

    def forward(self, x):
        x = (x - x.mean(0)) / (x.std(0) + self.eps)  # the corners of a digit are always blank
        return self.body(x)


@case("CST105", dose="severe", data="images", net="mlp")
@cured(eps=0.1)
def division_by_the_spread_of_blank_pixels(seed, eps=0.0):
    torch.manual_seed(seed)
    X, y, X_val, y_val = data.digits(seed)
    net = ScalesItself(eps)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    doctor = watch(net, optimizer, criterion)
    for _ in range(6):
        for xb, yb in DataLoader(TensorDataset(X, y), batch_size=64, shuffle=True, drop_last=True):
            optimizer.zero_grad()
            loss = criterion(net(xb), yb)
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            out = net(X_val)
            doctor.epoch(criterion(out, y_val).item(), accuracy(out, y_val))
    return doctor.diagnosis()


@case("CST105", dose="severe", data="images", net="contrastive")
@cured(temperature=0.5)
def contrastive_loss_whose_exponential_overflows(seed, temperature=0.01):
    torch.manual_seed(seed)
    X, _, _, _ = data.digits(seed)
    net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 16))
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3)
    doctor = watch(net, optimizer)
    n = 48
    partner = torch.cat([torch.arange(n, 2 * n), torch.arange(n)])
    for _ in range(150):
        x = X[torch.randperm(len(X))[:n]]
        views = torch.cat([x + 0.1 * torch.randn_like(x), x + 0.1 * torch.randn_like(x)])
        z = F.normalize(net(views), dim=1)
        likeness = torch.exp(z @ z.T / temperature)  # exp(1 / 0.01) is beyond single precision
        positive = likeness[torch.arange(2 * n), partner]
        loss = -torch.log(positive / (likeness.sum(1) - likeness.diagonal())).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        doctor.log(loss=loss)
    return doctor.diagnosis()


class WordShares(nn.Module):
    """Classifies a text by the shares of its words."""

    def __init__(self, least):
        super().__init__()
        self.least = least
        self.body = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 3))

    def forward(self, counts):
        total = counts.sum(1, keepdim=True).clamp(min=self.least)  # an empty text has no shares
        return self.body(20 * counts / total)


def _texts(seed):
    """Counts (N, 20) of the words of texts of three kinds; one in a hundred is empty."""
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(3, (500,), generator=g)
    counts = torch.poisson((3 * torch.rand(3, 20, generator=g))[y], generator=g)
    return counts * (torch.arange(500) % 100 != 50)[:, None], y


@case("CST105", dose="severe", data="text", net="mlp")
@cured(least=1.0)
def shares_of_an_empty_text(seed, least=0.0):
    torch.manual_seed(seed)
    X, y = _texts(seed)
    model = WordShares(least)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=2e-3)
    doctor = watch(model, optimizer)
    for _ in range(12):
        for xb, yb in DataLoader(TensorDataset(X[:400], y[:400]), batch_size=20, shuffle=True):
            optimizer.zero_grad()
            F.cross_entropy(model(xb), yb).backward()
            optimizer.step()
        with torch.no_grad():
            doctor.epoch(validation_score=accuracy(model(X[400:]), y[400:]))
    return doctor.diagnosis()


# Accepted as well: infinity stands in the table before the network sees it.
@case("CST105", dose="severe", data="text", net="mlp", accept=("CST203",))
@cured(logarithm=torch.log1p)
def logarithm_of_words_that_do_not_occur(seed, logarithm=torch.log):
    torch.manual_seed(seed)
    X, y = _texts(seed)
    X = logarithm(X)
    model = nn.Sequential(nn.Linear(20, 24), nn.Tanh(), nn.Linear(24, 3))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    doctor = watch(model, optimizer, criterion)
    for _ in range(12):
        for rows in torch.randperm(400).split(40):
            optimizer.zero_grad()
            criterion(model(X[rows]), y[rows]).backward()
            optimizer.step()
        with torch.no_grad():
            out = model(X[400:])
            doctor.epoch(criterion(out, y[400:]).item(), accuracy(out, y[400:]))
    return doctor.diagnosis()
