"""Healthy trainings on sequences."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.diagnose import Diagnosis, watch
from evidence.corpus.cases import case
from evidence.corpus.styles._data import commands, grammar, passengers, rng, sensors, z
from evidence.corpus.styles._loops import Carla, anna, ben, done, explained, right
from evidence.corpus.styles._nets import SensorRNN, TextRNN, TextTransformer, TinyGPT


@case(None, data="tokens", net="gru")
def commands_by_a_gru(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    net = TextRNN()
    opt = torch.optim.Adam(net.parameters(), lr=0.01)
    return Carla(net, opt, nn.CrossEntropyLoss()).fit(commands(seed, n=1000), 8)


@case(None, data="tokens", net="transformer")
def commands_by_attention(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    net = TextTransformer(dropout=0.1)
    opt = torch.optim.AdamW(net.parameters(), lr=5e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(opt, 5e-3, total_steps=8 * 40)
    data = commands(seed, n=1000)
    return ben(net, opt, F.cross_entropy, data, 8, scheduler=schedule, per_batch=True)


@case(None, data="series", net="lstm")
def readings_by_an_lstm(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    net = SensorRNN()
    opt = torch.optim.Adam(net.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 16)
    return ben(net, opt, F.mse_loss, sensors(seed, n=800), 16, bs=40, score=explained,
               scheduler=schedule, clip=1.0)  # fmt: skip


@case(None, data="series", net="gru")
def next_months_passengers(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    X, y, X_val, y_val = passengers(seed)
    X, X_val = (X - 330) / 90, (X_val - 330) / 90
    y, y_val = z(y, y_val)
    net = SensorRNN(nn.GRU, channels=1)
    opt = torch.optim.Adam(net.parameters(), lr=8e-3)
    return anna(net, opt, nn.MSELoss(), (X, y, X_val, y_val), 25, size=26, score=explained)


@case(None, data="tokens", net="transformer")
def a_small_language(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    train, val = grammar(seed, n=400)
    net = TinyGPT()
    opt = torch.optim.AdamW(net.parameters(), lr=4e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 10)
    doctor = watch(net, opt, task="lm")
    for _ in range(10):
        for rows in torch.randperm(len(train)).split(20):
            logits = net(train[rows, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), train[rows, 1:].flatten())
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
            doctor.log(loss=loss, outputs=logits, targets=train[rows, 1:])
        schedule.step()
        with torch.no_grad():
            logits = net(val[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), val[:, 1:].flatten())
        doctor.epoch(loss.item(), right(logits, val[:, 1:]))
    return done(doctor, right(logits, val[:, 1:]))


@case(None, data="tokens", net="transformer")
def hidden_words_guessed_from_both_sides(seed: int) -> Diagnosis:
    """Masked language model: it may look ahead, and only masked places count."""
    torch.manual_seed(seed)
    train, val = grammar(seed, n=500)
    net = TinyGPT(causal=False)
    opt = torch.optim.AdamW(net.parameters(), lr=5e-3)
    doctor = watch(net, opt)

    def hide(text: Tensor) -> tuple[Tensor, Tensor]:
        at = torch.rand(text.shape) < 0.2
        return text.masked_fill(at, 0), text.masked_fill(~at, -100)

    for _ in range(12):
        for rows in torch.randperm(len(train)).split(20):
            x, y = hide(train[rows])
            logits = net(x)
            loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
            opt.zero_grad()
            loss.backward()
            opt.step()
            doctor.log(loss=loss, outputs=logits, targets=y)
        with torch.no_grad():
            x, y = hide(val)
            logits = net(x)
            loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
        doctor.epoch(validation_loss=loss.item())
    return done(doctor, right(logits[y != -100], y[y != -100]))


class Packed(nn.Module):
    """Sequences of several lengths, packed as they should be."""

    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Embedding(40, 12, padding_idx=0)
        self.rnn = nn.LSTM(12, 24, batch_first=True)
        self.out = nn.Linear(24, 4)

    def forward(self, x: Tensor) -> Tensor:
        lengths = (x != 0).sum(1)
        packed = nn.utils.rnn.pack_padded_sequence(
            self.emb(x), lengths, batch_first=True, enforce_sorted=False
        )
        return self.out(self.rnn(packed)[1][0][-1])


@case(None, data="tokens", net="lstm")
def short_commands_padded_and_packed(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    X, y, X_val, y_val = commands(seed, n=900, length=6)
    ends = torch.randint(2, 7, (len(X), 1), generator=rng(seed))

    def padded(X: Tensor, y: Tensor) -> Tensor:
        X = X.masked_fill(X < 5, 7)
        X[:, 1] = y + 1  # the command is the second word
        return X.masked_fill(torch.arange(6) >= ends[: len(X)], 0)

    net = Packed()
    opt = torch.optim.Adam(net.parameters(), lr=0.01)
    data = padded(X, y), y, padded(X_val, y_val), y_val
    return anna(net, opt, nn.CrossEntropyLoss(), data, 10)


@case(None, data="sets", net="deep sets")
def the_largest_of_a_set(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    X = torch.randn(1100, 8, 2, generator=rng(seed))
    y = X[..., 0].amax(1, keepdim=True) + X[..., 1].mean(1, keepdim=True)
    y = (y - y.mean()) / y.std()

    class Sets(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.phi = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 32))
            self.rho = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))

        def forward(self, x: Tensor) -> Tensor:
            h = self.phi(x)
            return self.rho(torch.cat([h.amax(1), h.mean(1)], 1))

    net = Sets()
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    data = X[:800], y[:800], X[800:], y[800:]
    return Carla(net, opt, nn.MSELoss(), explained).fit(data, 12)
