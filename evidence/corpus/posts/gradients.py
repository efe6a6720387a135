"""Gradients that fade, explode or are no numbers: CST103, 104, 105."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.diagnose import Diagnosis, watch
from evidence.corpus.cases import case
from evidence.corpus.posts._data import (
    customers,
    gestures,
    handwriting,
    houses,
    parcels,
    reviews,
    rng,
    topics,
)
from evidence.corpus.posts._loops import end, end_scored, final, fit, kernel, quickstart, r2
from evidence.corpus.posts._nets import Reader, SmallCNN, begin, dense


@case("CST103", dose="severe", data="images", net="cnn")
def vgg_with_sigmoids(seed: int, fault: bool = True) -> Diagnosis:
    """Seven convolutions, each with a sigmoid as in the lecture of 1998; plain momentum."""
    torch.manual_seed(seed)
    act = nn.Sigmoid if fault else nn.ReLU
    layers: list[nn.Module] = [nn.Conv2d(1, 8, 3, padding=1), act()]
    for _ in range(6):
        layers += [nn.Conv2d(8, 8, 3, padding=1), act()]
    model = begin(nn.Sequential(*layers, nn.MaxPool2d(2), nn.Flatten(), nn.Linear(128, 10)))
    opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    return fit(model, opt, nn.CrossEntropyLoss(), handwriting(seed, 500), 7)


@case("CST103", dose="mild", data="tabular", net="mlp", accept=("CST109",))
def ten_tanh_layers_begun_small(seed: int, fault: bool = True) -> Diagnosis:
    """Ten tanh layers with weights of N(0, 0.05): what comes back to the first is nothing."""
    torch.manual_seed(seed)
    model = dense(6, *[32] * 10, 4, act=nn.Tanh)
    for m in model:
        if isinstance(m, nn.Linear):
            nn.init.normal_(m.weight, 0, 0.05 if fault else (1.2 / m.in_features) ** 0.5)
            nn.init.zeros_(m.bias)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    return quickstart(model, opt, nn.CrossEntropyLoss(), parcels(seed), 20)


@case("CST103", dose="severe", data="tabular", net="autoencoder", accept=("CST107",))
def stacked_autoencoder_of_logistic_units(seed: int, fault: bool = True) -> Diagnosis:
    """Encoder and decoder of five logistic layers each; it rebuilds the mean image only."""
    torch.manual_seed(seed)
    X, _, X_val, _ = handwriting(seed, 500)
    X, X_val = X.flatten(1), X_val.flatten(1)
    act = nn.Sigmoid if fault else nn.LeakyReLU
    model = begin(dense(64, 48, 40, 32, 24, 16, 24, 32, 40, 48, 64, act=act))
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    return fit(model, opt, nn.MSELoss(), (X, X, X_val, X_val), 15, metric=r2)


class Carry(nn.Module):
    """A plain recurrence; the label is given by the first steps of a long row."""

    def __init__(self, gain: float, kind: str):
        super().__init__()
        self.rnn = nn.RNN(2, 20, nonlinearity=kind, batch_first=True)
        nn.init.eye_(self.rnn.weight_hh_l0)
        self.rnn.weight_hh_l0.data.mul_(gain)
        self.out = nn.Linear(20, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.rnn(x)[0][:, -1])


def first_signs(seed: int, length: int = 30):
    r = rng(seed)
    X = r.normal(size=(300, length, 2)) * 0.2
    y = r.integers(2, size=300)
    X[:, :3, 0] += np_sign(y)[:, None]
    X, y = torch.as_tensor(X).float(), torch.as_tensor(y)
    return X[:220], y[:220], X[220:], y[220:]


def np_sign(y):
    return 2.0 * y - 1.0


@case("CST103", dose="severe", data="sequences", net="rnn")
def rnn_that_forgets_the_opening(seed: int, fault: bool = True) -> Diagnosis:
    """A tanh recurrence of half the identity must carry a sign over 27 steps."""
    torch.manual_seed(seed)
    model = Carry(0.5 if fault else 1.0, "tanh")
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    return fit(model, opt, nn.CrossEntropyLoss(), first_signs(seed), 15)


@case("CST104", dose="severe", data="sequences", net="rnn", accept=("CST109", "CST105"))
def relu_recurrence_above_one(seed: int, fault: bool = True) -> Diagnosis:
    """A ReLU recurrence begun at 1.5 times the identity, thirty steps long, no clipping."""
    torch.manual_seed(seed)
    model = Carry(1.5 if fault else 1.0, "relu")
    opt = torch.optim.SGD(model.parameters(), lr=0.003)
    return kernel(model, opt, F.cross_entropy, first_signs(seed), 14)


class Residual(nn.Module):
    """x + f(x), again and again, with no norm anywhere."""

    def __init__(self, gain: float, blocks: int = 14):
        super().__init__()
        self.inp = nn.Linear(6, 32)
        self.blocks = nn.ModuleList(nn.Linear(32, 32) for _ in range(blocks))
        self.out = nn.Linear(32, 1)
        for b in self.blocks:
            nn.init.normal_(b.weight, 0, gain / 32**0.5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.inp(x)
        for b in self.blocks:
            x = x + F.leaky_relu(b(x), 0.2)
        return self.out(x)


@case("CST104", dose="severe", data="tabular", net="residual",
      accept=("CST109", "CST101", "CST105"))  # fmt: skip
def fourteen_blocks_without_a_norm(seed: int, fault: bool = True) -> Diagnosis:
    """Residual branches with doubled weights and no norm: signal and gradient double each block."""
    torch.manual_seed(seed)
    model = Residual(2.0 if fault else 0.2)
    opt = torch.optim.SGD(model.parameters(), lr=0.003)
    return fit(model, opt, nn.MSELoss(), houses(seed), 25, metric=r2)


@case("CST104", dose="mild", data="tabular", net="mlp", accept=("CST202", "CST101"))
def three_prices_with_two_zeros_too_many(seed: int, fault: bool = True) -> Diagnosis:
    """Three targets read 300 where 3 was meant: each time they come the gradient leaps."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = houses(seed)
    y = y.clone()
    if fault:
        y[[11, 205, 333]] = 300.0
    model = dense(6, 48, 48, 1, act=nn.Tanh)
    opt = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9)
    return kernel(model, opt, F.mse_loss, (X, y, X_val, y_val), 15, metric=r2)


@case("CST105", dose="severe", data="tabular", net="mlp", accept=("CST301",))
def cross_entropy_by_hand(seed: int, fault: bool = True) -> Diagnosis:
    """-log of a sigmoid written out by hand: at sure answers it is the log of zero."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = customers(seed, noise=0.0)
    X, X_val = 6 * X, 6 * X_val
    model = dense(10, 64, 64, 1)
    opt = torch.optim.Adam(model.parameters(), lr=0.02)
    doctor = watch(model, opt)
    for _ in range(12):
        for idx in torch.randperm(len(X)).split(32):
            z, t = model(X[idx])[:, 0], y[idx].float()
            if fault:
                p = torch.sigmoid(z)
                loss = -(t * torch.log(p) + (1 - t) * torch.log(1 - p)).mean()
            else:
                loss = F.binary_cross_entropy_with_logits(z, t)
            opt.zero_grad()
            loss.backward()
            opt.step()
            doctor.log(loss=loss)
        doctor.epoch()
    return end(doctor, final(model, X_val, y_val))


class Twins(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 8))

    def forward(self, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        return self.net(a), self.net(b)


@case("CST105", dose="severe", data="images", net="siamese")
def contrastive_distance_of_equal_images(seed: int, fault: bool = True) -> Diagnosis:
    """The root of a squared distance of zero has no gradient: some pairs hold one image twice."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = handwriting(seed, 500)
    model = Twins()
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    doctor = watch(model, opt)
    for _ in range(150):
        i, j = torch.randint(len(X), (2, 32))
        j[0] = i[0]
        a, b = model(X[i], X[j])
        squared = ((a - b) ** 2).sum(1)
        d = torch.sqrt(squared if fault else squared + 1e-8)
        same = (y[i] == y[j]).float()
        loss = (same * d**2 + (1 - same) * F.relu(2 - d) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        doctor.log(loss=loss, outputs=d, targets=same)
    with torch.no_grad():
        d = torch.cdist(model.net(X_val), model.net(X))
    right = (y[d.nan_to_num(1e9).argmin(1)] == y_val).float().mean().item()
    return end(doctor, right)


@case("CST105", dose="severe", data="counts", net="mlp", accept=("CST101", "CST104"))
def poisson_rate_without_bounds(seed: int, fault: bool = True) -> Diagnosis:
    """exp of an unscaled output as the rate of a Poisson loss: it overflows."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = topics(seed)
    counts, counts_val = (X[:, :5] * y).sum(1, True), (X_val[:, :5] * y_val).sum(1, True)
    scale = 60.0 if fault else 1.0
    model = dense(30, 64, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    data = X * scale, counts, X_val * scale, counts_val
    loss = nn.PoissonNLLLoss(log_input=True)

    def explained(out: Tensor, t: Tensor) -> float:
        return r2(out.exp().clamp(max=50).nan_to_num(50), t)

    return fit(model, opt, loss, data, 12, metric=explained)


@case("CST105", dose="severe", data="text", net="attention")
def masked_average_of_an_empty_review(seed: int, fault: bool = True) -> Diagnosis:
    """A few reviews are empty after cleaning: the mean over their words is 0 / 0."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = reviews(seed)
    X = X.clone()
    if fault:
        X[::60] = 0
    model = Reader()
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    return quickstart(model, opt, nn.CrossEntropyLoss(), (X, y, X_val, y_val), 10)


@case("CST105", dose="severe", data="sequences", net="conv1d")
def windows_scaled_by_their_own_spread(seed: int, fault: bool = True) -> Diagnosis:
    """Each axis of a window is divided by its spread, and some watches lay still: 0 / 0."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = gestures(seed)
    X = X.transpose(1, 2).clone()
    X[::40, 2] = 0.0
    floor = 0.0 if fault else 1e-3
    X = (X - X.mean(2, keepdim=True)) / (X.std(2, keepdim=True) + floor)
    V = X_val.transpose(1, 2)
    V = (V - V.mean(2, keepdim=True)) / (V.std(2, keepdim=True) + floor)
    model = nn.Sequential(
        nn.Conv1d(3, 16, 5), nn.ReLU(), nn.AdaptiveMaxPool1d(4), nn.Flatten(), nn.Linear(64, 4)
    )
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    doctor = watch(model, opt)
    for _ in range(15):
        for idx in torch.randperm(len(X)).split(24):
            opt.zero_grad()
            loss = F.cross_entropy(model(X[idx]), y[idx])
            loss.backward()
            opt.step()
    return end_scored(
        doctor, model, (X, y, V, y_val), lambda o, t: (o.argmax(1) == t).float().mean()
    )


@case("CST103", dose="mild", data="images", net="cnn")
def hard_sigmoids_of_a_phone_model(seed: int, fault: bool = True) -> Diagnosis:
    """nn.Hardsigmoid, as on a phone, taken as the activation of six dense layers after a CNN."""
    torch.manual_seed(seed)
    act = nn.Hardsigmoid if fault else nn.Hardswish
    body = SmallCNN(32)
    model = begin(nn.Sequential(body, act(), *dense(32, 32, 32, 32, 32, 32, 10, act=act)))
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    return fit(model, opt, nn.CrossEntropyLoss(), handwriting(seed, 600), 12)
