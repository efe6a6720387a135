"""Too much learnt, too little, or the wrong thing: CST401 to 406."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.diagnose import Diagnosis, watch
from evidence.corpus.cases import case
from evidence.corpus.styles._data import (
    commands,
    cut,
    digit_images,
    orders,
    properties,
    ratings,
    rng,
    sensors,
)
from evidence.corpus.styles._loops import (
    SECONDS,
    Carla,
    anna,
    ben,
    done,
    explained,
    right,
    scores,
)
from evidence.corpus.styles._nets import ConvNet, Factors, SensorRNN, TextRNN, dense


@case("CST401", dose="severe", data="images", net="cnn", accept=("CST207",))
def blurred_images_learnt_by_heart(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    X, y, X_val, y_val = digit_images(seed, n=200)
    g = rng(seed)
    X = X + 1.2 * torch.randn(X.shape, generator=g)
    X_val = X_val + 1.2 * torch.randn(X_val.shape, generator=g)
    net = ConvNet(width=16, dropout=0.0 if fault else 0.4)
    opt = torch.optim.Adam(net.parameters(), lr=0.01 if fault else 4e-3)
    data = X, y, X_val, y_val
    found = anna(net, opt, nn.CrossEntropyLoss(), data, 40 if fault else 10)
    scores.append(-F.cross_entropy(net(X_val).detach(), y_val).item())
    return found


@case("CST401", dose="severe", data="ratings", net="embedding", accept=("CST207",))
def thirty_factors_a_user(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = Factors(30 if fault else 2)
    opt = torch.optim.Adam(net.parameters(), lr=0.02, weight_decay=0.0 if fault else 1e-3)
    data = ratings(seed, n=700, noise=0.6)
    return ben(net, opt, F.mse_loss, data, 30 if fault else 10, score=explained)


@case("CST402", dose="severe", data="images", net="autoencoder")
def images_through_one_number(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    X, _, X_val, _ = digit_images(seed)
    X, X_val = X.flatten(1), X_val.flatten(1)
    net = dense(64, 32, 1 if fault else 16, 32, 64)
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    return anna(net, opt, nn.MSELoss(), (X, X, X_val, X_val), 20, score=explained)


@case("CST402", dose="severe", data="tokens", net="gru")
def a_recurrence_of_one_unit(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = TextRNN(hidden=1 if fault else 24)
    opt = torch.optim.Adam(net.parameters(), lr=0.01)
    return Carla(net, opt, nn.CrossEntropyLoss()).fit(commands(seed), 15)


@case("CST402", dose="severe", data="tabular", net="linear")
def a_plane_through_a_curved_market(seed: int, fault: bool = True) -> Diagnosis:
    from castalia.diagnose import examine

    torch.manual_seed(seed)
    X, y, X_val, y_val = orders(seed)
    net, loss_fn = nn.Linear(12, 1) if fault else dense(12, 64, 32, 1), nn.MSELoss()
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    for _ in range(20):
        for rows in torch.randperm(len(X)).split(32):
            opt.zero_grad()
            loss_fn(net(X[rows]), y[rows]).backward()
            opt.step()
    scores.append(explained(net(X_val).detach(), y_val))
    return examine(net, loss_fn, (X, y), (X_val, y_val), optimizer=opt, seconds=SECONDS)


@case("CST403", dose="severe", data="series", net="gru", accept=("CST401", "CST406"))
def forecasts_of_the_lottery(seed: int, fault: bool = True) -> Diagnosis:
    """The target has nothing to do with the sequences."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = sensors(seed)
    if fault:
        y = torch.randn(y.shape, generator=rng(seed))
        y_val = torch.randn(y_val.shape, generator=rng(seed + 1))
    net = SensorRNN(nn.GRU, hidden=12)
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    return anna(net, opt, nn.MSELoss(), (X, y, X_val, y_val), 12, score=explained)


@case("CST403", dose="mild", data="tabular", net="mlp", accept=("CST401",))
def a_large_net_for_a_straight_line(seed: int, fault: bool = True) -> Diagnosis:
    """The truth is linear and there are few rows; the network is worse than a line."""
    from castalia.diagnose import examine

    torch.manual_seed(seed)
    g = rng(seed)
    X = torch.randn(450, 20, generator=g)
    y = X @ torch.randn(20, 1, generator=g) / 20**0.5 + 0.7 * torch.randn(450, 1, generator=g)
    X, y, X_val, y_val = cut(X, y, 150, seed)
    net, loss_fn = dense(20, 128, 128, 1) if fault else nn.Linear(20, 1), nn.MSELoss()
    opt = torch.optim.Adam(net.parameters(), lr=2e-3 if fault else 0.01)
    for _ in range(60):
        for rows in torch.randperm(len(X)).split(32):
            opt.zero_grad()
            loss_fn(net(X[rows]), y[rows]).backward()
            opt.step()
    scores.append(explained(net(X_val).detach(), y_val))
    return examine(net, loss_fn, (X, y), (X_val, y_val), optimizer=opt, seconds=SECONDS)


@case("CST404", dose="severe", data="images", net="cnn")
def nine_features_in_ten_dropped(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    p = 0.95 if fault else 0.2
    net = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(p),
                        nn.Flatten(), nn.Linear(128, 32), nn.ReLU(), nn.Dropout(p),
                        nn.Linear(32, 10))  # fmt: skip
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    return anna(net, opt, nn.CrossEntropyLoss(), digit_images(seed), 8)


@case("CST404", dose="severe", data="tokens", net="gru")
def decay_of_a_tenth_in_adam(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = TextRNN()
    opt = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=0.1 if fault else 1e-5)
    return ben(net, opt, F.cross_entropy, commands(seed), 10)


@case("CST404", dose="mild", data="tabular", net="mlp")
def a_penalty_on_absolute_weights(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    X, y, X_val, y_val = orders(seed)
    net = dense(12, 48, 24, 1)
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    doctor = watch(net, opt)
    l1 = 0.02 if fault else 1e-5
    for _ in range(15):
        for rows in torch.randperm(len(X)).split(32):
            out = net(X[rows])
            loss = F.mse_loss(out, y[rows]) + l1 * sum(p.abs().sum() for p in net.parameters())
            opt.zero_grad()
            loss.backward()
            opt.step()
            doctor.log(loss=loss, outputs=out, targets=y[rows])
        with torch.no_grad():
            out = net(X_val)
        doctor.epoch(F.mse_loss(out, y_val).item(), explained(out, y_val))
    return done(doctor, explained(out, y_val))


def _honest(prob: Tensor, y: Tensor) -> float:
    """One minus the gap between the mean probability and the rate of ones."""
    return 1 - (prob.mean() - y.mean()).abs().item()


@case("CST405", dose="severe", data="tabular", net="mlp")
def positives_weighted_without_need(seed: int, fault: bool = True) -> Diagnosis:
    """Half of the labels are ones; their weight of 15 was copied from another project."""
    torch.manual_seed(seed)
    g = rng(seed)
    X = torch.randn(1300, 6, generator=g)
    y = (torch.rand(1300, generator=g) < (X[:, 0] + X[:, 1] * X[:, 2]).sigmoid()).float()
    X, y, X_val, y_val = X[:900], y[:900], X[900:], y[900:]
    net = dense(6, 16, 1)
    loss_fn = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(15.0 if fault else 1.0))
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    doctor = watch(net, opt, task="binary")
    for _ in range(10):
        for rows in torch.randperm(len(X)).split(32):
            loss = loss_fn(net(X[rows]).squeeze(1), y[rows])
            opt.zero_grad()
            loss.backward()
            opt.step()
            doctor.log(loss=loss)
        with torch.no_grad():
            out = net(X_val).squeeze(1)
            loss = F.binary_cross_entropy_with_logits(out, y_val)
            doctor.log(loss=loss, outputs=out, targets=y_val)
        doctor.epoch(loss.item(), right(out, y_val))
    return done(doctor, _honest(out.sigmoid(), y_val))


@case("CST405", dose="severe", data="images", net="cnn", accept=("CST401",))
def sure_of_every_blurred_image(seed: int, fault: bool = True) -> Diagnosis:
    """Logits are multiplied by twelve for sharper samples before they are scored."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = digit_images(seed)
    g = rng(seed)
    X = X + 1.3 * torch.randn(X.shape, generator=g)
    X_val = X_val + 1.3 * torch.randn(X_val.shape, generator=g)
    net = ConvNet(width=6)
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    doctor = watch(net, opt)
    for _ in range(5):
        net.train()
        for rows in torch.randperm(len(X)).split(32):
            loss = F.cross_entropy(net(X[rows]), y[rows])
            opt.zero_grad()
            loss.backward()
            opt.step()
            doctor.log(loss=loss)
        net.eval()
        with torch.no_grad():
            out = net(X_val) * (12.0 if fault else 1.0)
            loss = F.cross_entropy(out, y_val)
            doctor.log(loss=loss, outputs=out, targets=y_val)
        doctor.epoch(loss.item(), right(out, y_val))
    sure = out.softmax(1).amax(1).mean().item()
    return done(doctor, 1 - abs(sure - right(out, y_val)))


class Emptied(TextRNN):
    """Padding (0) is to be blanked; the mask is the wrong way round."""

    fault = True

    def forward(self, tokens: Tensor) -> Tensor:
        keep = (tokens == 0) if self.fault else (tokens != 0)
        hidden, _ = self.rnn(self.emb(tokens) * keep[..., None])
        return self.out(hidden.mean(1))


@case("CST406", dose="severe", data="tokens", net="gru")
def a_mask_the_wrong_way_round(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = Emptied()
    net.fault = fault
    opt = torch.optim.Adam(net.parameters(), lr=0.01)
    return anna(net, opt, nn.CrossEntropyLoss(), commands(seed), 8)


class Loader:
    """Hands out the first rows again and again: the index is never moved on."""

    def __init__(self, X: Tensor, y: Tensor, fault: bool) -> None:
        self.X, self.y, self.fault = X, y, fault

    def __iter__(self):
        buffer = torch.zeros_like(self.X[:30])
        for rows in torch.randperm(len(self.X)).split(30):
            if not self.fault:
                buffer = self.X[rows]
            yield buffer[: len(rows)], self.y[rows]


@case("CST406", dose="severe", data="tabular", net="mlp")
def a_buffer_that_is_never_filled(seed: int, fault: bool = True) -> Diagnosis:
    """Every batch of inputs is the same block of zeros."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = properties(seed)
    net, loss_fn = dense(64, 32, 4), nn.BCEWithLogitsLoss()
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    doctor = watch(net, opt, loss_fn)
    for _ in range(8):
        for x, target in Loader(X, y, fault):
            opt.zero_grad()
            loss_fn(net(x), target).backward()
            opt.step()
        with torch.no_grad():
            out = net(X_val)
            doctor.epoch(loss_fn(out, y_val).item(), right(out, y_val))
    return done(doctor, right(out, y_val))
