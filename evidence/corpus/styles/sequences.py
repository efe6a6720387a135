"""Codes that say nothing, padding that is learnt, futures that are seen: CST503, 504, 505."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.diagnose import Diagnosis, watch
from evidence.corpus.cases import case
from evidence.corpus.styles._data import digit_images, grammar, rng
from evidence.corpus.styles._loops import SECONDS, done, explained, right, scores
from evidence.corpus.styles._nets import TinyGPT


class ConvVAE(nn.Module):
    """Images to six normal codes and back."""

    def __init__(self) -> None:
        super().__init__()
        self.enc = nn.Sequential(nn.Conv2d(1, 12, 3, stride=2, padding=1), nn.ReLU(), nn.Flatten())
        self.mu, self.logvar = nn.Linear(192, 6), nn.Linear(192, 6)
        self.dec = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 64))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        h = self.enc(x)
        mu, logvar = self.mu(h), self.logvar(h)
        z = mu + (logvar / 2).exp() * torch.randn_like(mu)
        return self.dec(z).view_as(x), mu, logvar


def _divergence(mu: Tensor, logvar: Tensor) -> Tensor:
    return 0.5 * (mu**2 + logvar.exp() - 1 - logvar).sum(1).mean()


@case("CST503", dose="severe", data="images", net="vae")
def beta_of_fifty(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    X, _, X_val, _ = digit_images(seed)
    net = ConvVAE()
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    doctor = watch(net, opt, task="vae")
    beta = 50.0 if fault else 0.5
    for _ in range(12):
        for rows in torch.randperm(len(X)).split(32):
            x = X[rows]
            seen, mu, logvar = net(x)
            loss = (seen - x).square().sum((1, 2, 3)).mean() + beta * _divergence(mu, logvar)
            opt.zero_grad()
            loss.backward()
            opt.step()
            doctor.log(loss=loss, outputs=(seen, mu, logvar), targets=x)
        with torch.no_grad():
            seen, *_ = net(X_val)
        doctor.epoch(validation_loss=F.mse_loss(seen, X_val).item())
    return done(doctor, explained(seen, X_val))


@case("CST503", dose="mild", data="images", net="vae")
def a_mean_over_pixels_beside_a_sum_over_codes(seed: int, fault: bool = True) -> Diagnosis:
    """The doctor receives nothing but the loss."""
    torch.manual_seed(seed)
    X, _, X_val, _ = digit_images(seed)
    net = ConvVAE()
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    doctor = watch(net, opt)
    for _ in range(12):
        for rows in torch.randperm(len(X)).split(32):
            seen, mu, logvar = net(X[rows])
            error = F.mse_loss(seen, X[rows])
            loss = (error if fault else 64 * error) + _divergence(mu, logvar)
            opt.zero_grad()
            loss.backward()
            opt.step()
            doctor.log(loss=loss)
        doctor.epoch()
    with torch.no_grad():
        return done(doctor, explained(net(X_val)[0], X_val))


def _padded(seed: int) -> tuple[Tensor, Tensor]:
    """Sentences of the grammar that end after 3 to 6 of 24 places; 0 behind them."""
    parts = grammar(seed, n=300, length=24)
    return tuple(
        text * (torch.arange(24) < torch.randint(3, 7, (len(text), 1), generator=rng(seed + 1)))
        for text in parts
    )


def _language(net, opt, text, held_out, ignore: int, epochs: int, task="lm") -> Diagnosis:
    """Train on next tokens; the score is that of true tokens."""
    doctor = watch(net, opt, task=task)
    for _ in range(epochs):
        for rows in torch.randperm(len(text)).split(15):
            x, y = text[rows, :-1], text[rows, 1:]
            logits = net(x)
            loss = F.cross_entropy(logits.flatten(0, 1), y.flatten(), ignore_index=ignore)
            opt.zero_grad()
            loss.backward()
            opt.step()
            doctor.log(loss=loss, outputs=logits, targets=y, inputs=x)
        with torch.no_grad():
            logits, y = net(held_out[:, :-1]), held_out[:, 1:]
            loss = F.cross_entropy(logits.flatten(0, 1), y.flatten(), ignore_index=ignore)
        doctor.epoch(validation_loss=loss.item())
    real = y != 0
    return done(doctor, right(logits[real], y[real]))


@case("CST504", dose="severe", data="tokens", net="transformer")
def the_wrong_index_is_ignored(seed: int, fault: bool = True) -> Diagnosis:
    """Padding is 0; the loss ignores -1."""
    torch.manual_seed(seed)
    net = TinyGPT()
    opt = torch.optim.AdamW(net.parameters(), lr=3e-3)
    return _language(net, opt, *_padded(seed), ignore=-1 if fault else 0, epochs=6)


class Elman(nn.Module):
    """A recurrent language model."""

    def __init__(self, both: bool = False) -> None:
        super().__init__()
        self.emb = nn.Embedding(12, 16)
        self.rnn = nn.LSTM(16, 24, batch_first=True, bidirectional=both)
        self.out = nn.Linear(48 if both else 24, 12)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.rnn(self.emb(x))[0])


@case("CST504", dose="severe", data="tokens", net="lstm")
def padding_that_nobody_mentions(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    net = Elman()
    opt = torch.optim.Adam(net.parameters(), lr=0.01)
    ignore = -100 if fault else 0
    return _language(net, opt, *_padded(seed), ignore=ignore, epochs=6, task=None)


def _blind(net: nn.Module, text: Tensor) -> float:
    """The rate of right next tokens where the future is truly not there."""
    with torch.no_grad():
        hits = [net(text[:, :t])[:, -1].argmax(1) == text[:, t] for t in range(4, 14)]
    return torch.stack(hits).float().mean().item()


@case("CST505", dose="severe", data="tokens", net="transformer")
def a_decoder_without_its_mask(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    text, held_out = grammar(seed)
    net = TinyGPT(causal=not fault)
    opt = torch.optim.AdamW(net.parameters(), lr=3e-3)
    found = _language(net, opt, text, held_out, -100, epochs=8)
    scores.append(_blind(net, held_out))
    return found


@case("CST505", dose="severe", data="tokens", net="lstm")
def both_directions_to_foretell_one(seed: int, fault: bool = True) -> Diagnosis:
    from castalia.diagnose import examine

    torch.manual_seed(seed)
    text, held_out = grammar(seed)
    net, loss_fn = Elman(both=fault), nn.CrossEntropyLoss()

    def loss(logits: Tensor, y: Tensor) -> Tensor:
        return loss_fn(logits.flatten(0, 1), y.flatten())

    opt = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(8):
        for rows in torch.randperm(len(text)).split(15):
            opt.zero_grad()
            loss(net(text[rows, :-1]), text[rows, 1:]).backward()
            opt.step()
    scores.append(_blind(net, held_out))
    train, val = (text[:, :-1], text[:, 1:]), (held_out[:, :-1], held_out[:, 1:])
    return examine(net, loss, train, val, optimizer=opt, task="lm", seconds=SECONDS)


# The token to be foretold is among the inputs: both names say what is wrong.
@case("CST505", dose="severe", data="tokens", net="transformer", accept=("CST206",))
def targets_that_were_not_shifted(seed: int, fault: bool = True) -> Diagnosis:
    """The model learns to repeat the token it has just read."""
    torch.manual_seed(seed)
    text, held_out = grammar(seed)
    net = TinyGPT()
    opt = torch.optim.AdamW(net.parameters(), lr=3e-3)
    doctor = watch(net, opt, task="lm")
    for _ in range(6):
        for rows in torch.randperm(len(text)).split(15):
            x = text[rows, :-1]
            y = x if fault else text[rows, 1:]
            logits = net(x)
            loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
            opt.zero_grad()
            loss.backward()
            opt.step()
            doctor.log(loss=loss, outputs=logits, targets=y, inputs=x)
        doctor.epoch()
    return done(doctor, _blind(net, held_out))
