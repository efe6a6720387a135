"""Codes that say nothing, padding that is learnt, futures that are seen: CST503, 504, 505."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.diagnose import Diagnosis, watch
from evidence.corpus.cases import case
from evidence.corpus.exercises._data import PAD, digits, sentences, source
from evidence.corpus.exercises._loops import SECONDS, accuracy, batches, r2, scores, verdict
from evidence.corpus.exercises._nets import LetterGRU


class VAE(nn.Module):
    """Images to eight normal codes and back."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 16))
        self.decoder = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.Sigmoid())

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mean, logvar = self.encoder(x).chunk(2, 1)
        z = mean + torch.randn_like(mean) * (0.5 * logvar).exp()
        return self.decoder(z), mean, logvar


def _kl(mean: Tensor, logvar: Tensor) -> Tensor:
    return -0.5 * (1 + logvar - mean**2 - logvar.exp()).sum(1)


@case("CST503", dose="severe", data="images", net="vae")
def pixels_averaged_but_codes_summed(seed: int, fault: bool = True) -> Diagnosis:
    """The mean over rows and pixels leaves the reconstruction a two-thousandth of its weight."""
    torch.manual_seed(seed)
    data = digits(seed, flat=True)
    net = VAE()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    doctor = watch(net, optimizer, task="vae")
    for _ in range(12):
        for x, _ in batches(data.X, data.y, 32):
            seen, mean, logvar = net(x)
            error = F.binary_cross_entropy(seen, x, reduction="mean" if fault else "sum")
            kl = _kl(mean, logvar).sum()
            loss = error + kl if fault else (error + kl) / len(x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss, outputs=(seen, mean, logvar), targets=x)
        with torch.no_grad():
            seen, mean, logvar = net(data.X_val)
        doctor.epoch(validation_loss=F.mse_loss(seen, data.X_val).item())
    return verdict(doctor, r2(seen, data.X_val))


class SentenceVAE(nn.Module):
    """A sentence to a code; a recurrent decoder that also sees the letters before."""

    def __init__(self, letters: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(letters, 16)
        self.reader = nn.GRU(16, 24, batch_first=True)
        self.to_mean, self.to_logvar = nn.Linear(24, 4), nn.Linear(24, 4)
        self.start = nn.Linear(4, 32)
        self.writer = nn.GRU(16, 32, batch_first=True)
        self.head = nn.Linear(32, letters)

    def forward(self, text: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        state = self.reader(self.embed(text))[1][0]
        mean, logvar = self.to_mean(state), self.to_logvar(state)
        z = mean + torch.randn_like(mean) * (0.5 * logvar).exp()
        states, _ = self.writer(self.embed(text[:, :-1]), self.start(z).tanh()[None])
        return self.head(states), mean, logvar


@case("CST503", dose="severe", data="text", net="vae")
def a_decoder_that_needs_no_code(seed: int, fault: bool = True) -> Diagnosis:
    """Full weight on the divergence from the first step; the letters before say enough."""
    torch.manual_seed(seed)
    text, letters = sentences(seed, n=200, length=16)
    net = SentenceVAE(letters)
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    doctor = watch(net, optimizer)
    for epoch in range(10):
        weight = 1.0 if fault else 0.05 * min(1.0, epoch / 5)
        for (x,) in _rows(text[:160], 16):
            logits, mean, logvar = net(x)
            error = F.cross_entropy(logits.flatten(0, 1), x[:, 1:].flatten(), reduction="sum")
            loss = (error + weight * _kl(mean, logvar).sum()) / len(x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss)
        doctor.epoch()
    with torch.no_grad():
        _, mean, logvar = net(text[160:])
    return verdict(doctor, _kl(mean, logvar).mean())


def _rows(X: Tensor, size: int) -> list[tuple[Tensor]]:
    return [(X[rows],) for rows in torch.randperm(len(X)).split(size)]


def _padded(seed: int, n: int, length: int) -> tuple[Tensor, int]:
    """Return short texts with padding behind them; 0 is the padding."""
    text, letters = sentences(seed, n=n, length=length)
    text = text + 1
    ends = torch.randint(4, length // 3, (len(text), 1), generator=source(seed))
    return text.masked_fill(torch.arange(length) >= ends, PAD), letters + 1


@case("CST504", dose="severe", data="text", net="gru")
def padding_counted_as_text(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    text, letters = _padded(seed, 300, 36)
    net = LetterGRU(letters, hidden=32)
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    loss_fn = nn.CrossEntropyLoss(ignore_index=-100 if fault else PAD)
    doctor = watch(net, optimizer, loss_fn, task="lm")
    for _ in range(5):
        for (x,) in _rows(text[:240], 16):
            loss = loss_fn(net(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            logits, y = net(text[240:, :-1]), text[240:, 1:]
            doctor.epoch(validation_loss=loss_fn(logits.flatten(0, 1), y.flatten()).item())
    real = y != PAD
    return verdict(doctor, accuracy(logits[real], y[real]))


class Tagger(nn.Module):
    """A tag for every word: 0 for padding, 1..4 for what the word is."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(81, 16, padding_idx=PAD)
        self.rnn = nn.LSTM(16, 16, batch_first=True, bidirectional=True)
        self.head = nn.Linear(32, 5)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.rnn(self.embed(tokens))[0])


@case("CST504", dose="severe", data="text", net="lstm")
def nine_tags_in_ten_are_padding(seed: int, fault: bool = True) -> Diagnosis:
    """Ninety per cent right, all of it behind the end of the sentences."""
    torch.manual_seed(seed)
    g = source(seed)
    tokens = torch.randint(1, 81, (260, 40), generator=g)
    before = F.pad(tokens, (1, 0))[:, :-1]
    tags = 1 + 2 * (before % 2) + (tokens % 2)  # a word's tag depends on the word before
    ends = torch.randint(2, 7, (260, 1), generator=g)
    outside = torch.arange(40) >= ends
    tokens, tags = tokens.masked_fill(outside, PAD), tags.masked_fill(outside, PAD)
    net = Tagger()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    doctor = watch(net, optimizer)
    for _ in range(10):
        for x, y in batches(tokens[:200], tags[:200], 20):
            logits = net(x)
            loss = F.cross_entropy(logits.transpose(1, 2), y, ignore_index=-100 if fault else PAD)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss, outputs=logits, targets=y)
        with torch.no_grad():
            logits, y = net(tokens[200:]), tags[200:]
        doctor.epoch(validation_score=accuracy(logits, y))
    real = y != PAD
    return verdict(doctor, accuracy(logits[real], y[real]))


class LetterTransformer(nn.Module):
    """A language model that should not look ahead."""

    def __init__(self, letters: int, length: int, causal: bool) -> None:
        super().__init__()
        self.embed = nn.Embedding(letters, 32)
        self.place = nn.Parameter(0.02 * torch.randn(length, 32))
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(32, letters)
        self.causal = causal

    def forward(self, letters: Tensor) -> Tensor:
        length = letters.shape[1]
        h = self.embed(letters) + self.place[:length]
        mask = nn.Transformer.generate_square_subsequent_mask(length) if self.causal else None
        return self.head(self.encoder(h, mask=mask))


def _next_letter(net: nn.Module, text: Tensor) -> float:
    """The rate of right next letters where the future is truly not there."""
    with torch.no_grad():
        guesses = [net(text[:, :t])[:, -1].argmax(1) == text[:, t] for t in range(4, 12)]
    return torch.stack(guesses).float().mean().item()


@case("CST505", dose="severe", data="text", net="transformer")
def attention_without_a_mask(seed: int, fault: bool = True) -> Diagnosis:
    torch.manual_seed(seed)
    text, letters = sentences(seed, n=280, length=16)
    net = LetterTransformer(letters, 16, causal=not fault)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    doctor = watch(net, optimizer, task="lm")
    for _ in range(8):
        for (x,) in _rows(text[:220], 16):
            logits = net(x[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), x[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss, outputs=logits, targets=x[:, 1:], inputs=x[:, :-1])
        net.eval()
        with torch.no_grad():
            logits = net(text[220:, :-1])
            doctor.epoch(F.cross_entropy(logits.flatten(0, 1), text[220:, 1:].flatten()).item())
        net.train()
    return verdict(doctor, _next_letter(net.eval(), text[220:]))


class BothWays(nn.Module):
    """A recurrent language model that reads from both ends, or only from the left."""

    def __init__(self, letters: int, both: bool) -> None:
        super().__init__()
        self.embed = nn.Embedding(letters, 16)
        self.rnn = nn.LSTM(16, 24, batch_first=True, bidirectional=both)
        self.head = nn.Linear(48 if both else 24, letters)

    def forward(self, letters: Tensor) -> Tensor:
        return self.head(self.rnn(self.embed(letters))[0]).transpose(1, 2)  # (B, letters, T)


@case("CST505", dose="severe", data="text", net="lstm")
def a_language_model_that_reads_backwards_too(seed: int, fault: bool = True) -> Diagnosis:
    from castalia.diagnose import examine

    torch.manual_seed(seed)
    text, letters = sentences(seed, n=280, length=16)
    net, loss_fn = BothWays(letters, fault), nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(6):
        for (x,) in _rows(text[:220], 16):
            optimizer.zero_grad()
            loss_fn(net(x[:, :-1]), x[:, 1:]).backward()
            optimizer.step()
    with torch.no_grad():
        guesses = [net(text[220:, :t])[..., -1].argmax(1) == text[220:, t] for t in range(4, 12)]
    scores.append(torch.stack(guesses).float().mean().item())
    train, validation = (text[:220, :-1], text[:220, 1:]), (text[220:, :-1], text[220:, 1:])
    return examine(net, loss_fn, train, validation, optimizer=optimizer, task="lm", seconds=SECONDS)
