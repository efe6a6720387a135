"""Gradients that vanish, explode or are no numbers: CST103, 104, 105."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.diagnose import Diagnosis, watch
from evidence.corpus.cases import case
from evidence.corpus.styles._data import WORDS, commands, digit_images, orders, rng, sensors
from evidence.corpus.styles._loops import Carla, anna, ben, done, explained, right
from evidence.corpus.styles._nets import dense


@case("CST103", dose="severe", data="images", net="autoencoder")
def a_deep_autoencoder_of_sigmoids(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    X, _, X_val, _ = digit_images(seed)
    X, X_val = X.flatten(1), X_val.flatten(1)
    act = nn.Sigmoid if fault else nn.ELU
    net = dense(64, 48, 32, 24, 16, 24, 32, 48, 64, act=act)
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    return anna(net, opt, nn.MSELoss(), (X, X, X_val, X_val), 12, score=explained)


class Elman(nn.Module):
    """A recurrence by hand; its squashing function is the question."""

    def __init__(self, squash, scale: float) -> None:
        super().__init__()
        self.hidden, self.inp = nn.Linear(20, 20), nn.Linear(3, 20)
        self.out = nn.Linear(20, 2)
        self.squash = squash
        with torch.no_grad():
            self.hidden.weight.copy_(scale * torch.linalg.qr(torch.randn(20, 20))[0])

    def forward(self, x: Tensor) -> Tensor:
        h = x.new_zeros(len(x), 20)
        for t in range(x.shape[1]):
            h = self.squash(self.hidden(h) + self.inp(x[:, t]))
        return self.out(h)


def _first_sign(seed: int, length: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    X = 0.3 * torch.randn(900, length, 3, generator=rng(seed))
    y = torch.randint(2, (900,), generator=rng(seed + 1))
    X[:, 0, 0] = 2.0 * y - 1
    return X[:600], y[:600], X[600:], y[600:]


@case("CST103", dose="severe", data="series", net="rnn")
def the_answer_stands_at_the_beginning(seed: int, fault: bool = True) -> Diagnosis:
    """Twenty-five sigmoids between the answer and the question."""
    torch.manual_seed(seed)
    net = Elman(torch.sigmoid if fault else torch.tanh, 1.0)
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    return Carla(net, opt, nn.CrossEntropyLoss()).fit(_first_sign(seed, 25), 6)


@case("CST104", dose="severe", data="series", net="rnn", accept=("CST109",))
def a_recurrence_of_relus_that_amplifies(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = Elman(torch.relu if fault else torch.tanh, 4.0 if fault else 1.0)
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    return Carla(net, opt, nn.CrossEntropyLoss()).fit(_first_sign(seed, 25), 6)


class Wide(nn.Module):
    """Eight blocks added up, each as loud as its gain."""

    def __init__(self, gain: float) -> None:
        super().__init__()
        self.inp, self.out = nn.Linear(12, 32), nn.Linear(32, 1)
        self.blocks = nn.ModuleList(dense(32, 32, 32) for _ in range(8))
        self.gain = gain

    def forward(self, x: Tensor) -> Tensor:
        h = self.inp(x)
        for block in self.blocks:
            h = h + self.gain * block(h)
        return self.out(h)


@case("CST104", dose="mild", data="tabular", net="resnet", accept=("CST109",))
def residual_branches_that_shout(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = Wide(6.0 if fault else 0.3)
    opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    return ben(net, opt, F.mse_loss, orders(seed), 10, score=explained)


class Masked(nn.Module):
    """Padding is masked; a sequence of nothing but padding has nothing left to attend to."""

    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Embedding(WORDS, 16)
        self.query, self.value = nn.Parameter(torch.randn(16)), nn.Linear(16, 16)
        self.out = nn.Linear(16, 4)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.emb(tokens)
        scores = (x @ self.query / 4).masked_fill(tokens == 0, float("-inf"))  # (N, T)
        weights = scores.softmax(-1)
        return self.out((weights[..., None] * self.value(x).relu()).sum(1))


@case("CST105", dose="severe", data="tokens", net="transformer")
def an_empty_sentence_under_a_mask(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    X, y, X_val, y_val = commands(seed)
    if fault:
        X = X.clone()
        X[::97] = 0
    net = Masked()
    opt = torch.optim.Adam(net.parameters(), lr=0.01)
    return anna(net, opt, nn.CrossEntropyLoss(), (X, y, X_val, y_val), 8)


@case("CST105", dose="severe", data="tabular", net="mlp")
def the_logarithm_of_a_negative_forecast(seed: int, fault: bool = True) -> Diagnosis:
    """The squared error of logarithms; nothing keeps the forecast above zero."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = orders(seed)
    data = X, y.exp(), X_val, y_val.exp()
    net = nn.Sequential(dense(12, 48, 1), nn.Identity() if fault else nn.Softplus())
    opt = torch.optim.Adam(net.parameters(), lr=0.01)

    def rmsle(out: Tensor, target: Tensor) -> Tensor:
        return (out.log() - target.log()).square().mean().sqrt()

    return ben(net, opt, rmsle, data, 8, score=explained)


@case("CST105", dose="severe", data="series", net="gru")
def one_reading_is_infinite(seed: int, fault: bool = True) -> Diagnosis:
    """A division by an idle sensor left an infinity in one of six hundred sequences."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = sensors(seed)
    X = X.clone()
    if fault:
        X[311, 4, 1] = float("inf")
    rnn, head = nn.GRU(3, 24, batch_first=True), nn.Linear(24, 1)
    net = nn.ModuleList([rnn, head])
    opt = torch.optim.Adam(net.parameters(), lr=0.01)
    doctor = watch(net, opt)
    for _ in range(8):
        for rows in torch.randperm(len(X)).split(30):
            opt.zero_grad()
            loss = F.mse_loss(head(rnn(X[rows])[0][:, -1]), y[rows])
            loss.backward()
            opt.step()
            doctor.log(loss=loss.item())
        with torch.no_grad():
            out = head(rnn(X_val)[0][:, -1])
        doctor.epoch(F.mse_loss(out, y_val).item())
    return done(doctor, explained(out, y_val))


@case("CST105", dose="mild", data="images", net="siamese")
def the_cosine_of_a_black_image(seed: int, fault: bool = True) -> Diagnosis:
    """Rows are divided by their length; some images are blank."""
    torch.manual_seed(seed)
    X, y, X_val, y_val = digit_images(seed)
    X = X.flatten(1).clone()
    X[::50] = 0.0
    X_val = X_val.flatten(1)
    net = dense(64, 32, 10)

    def unit(x: Tensor) -> Tensor:
        return 8 * x / x.norm(dim=1, keepdim=True) if fault else 8 * F.normalize(x, dim=1)

    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    doctor = watch(net, opt, nn.CrossEntropyLoss())
    for _ in range(6):
        for rows in torch.randperm(len(X)).split(32):
            loss = F.cross_entropy(net(unit(X[rows])), y[rows])
            opt.zero_grad()
            loss.backward()
            opt.step()
        with torch.no_grad():
            out = net(unit(X_val))
        doctor.epoch(validation_score=right(out, y_val))
    return done(doctor, right(out, y_val))
