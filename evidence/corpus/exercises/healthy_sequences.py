"""Healthy trainings on texts and series."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.diagnose import Diagnosis, watch
from evidence.corpus.cases import case
from evidence.corpus.exercises._data import PAD, reviews, sentences, series, source, waves
from evidence.corpus.exercises._loops import accuracy, batches, r2, train, verdict
from evidence.corpus.exercises._nets import LetterGRU, Recurrent, TextTransformer


@case(None, data="text", net="gru")
def letters_by_a_recurrent_network(seed: int) -> Diagnosis:
    """A causal language model; four letters in five are the right ones."""
    torch.manual_seed(seed)
    text, letters = sentences(seed, n=300)
    net = LetterGRU(letters)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    doctor = watch(net, optimizer, task="lm")
    for _ in range(7):
        for x, y in batches(text[:240, :-1], text[:240, 1:], 16):
            loss = F.cross_entropy(net(x).flatten(0, 1), y.flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            doctor.log(loss=loss)
        with torch.no_grad():
            logits, y = net(text[240:, :-1]), text[240:, 1:]
            held_out = F.cross_entropy(logits.flatten(0, 1), y.flatten())
        doctor.epoch(held_out.item(), accuracy(logits, y))
    return verdict(doctor, accuracy(logits, y))


class Causal(nn.Module):
    """A small transformer that looks only back."""

    def __init__(self, letters: int, length: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(letters, 32)
        self.place = nn.Embedding(length, 32)
        layer = nn.TransformerEncoderLayer(
            32, 4, 64, dropout=0.0, batch_first=True, norm_first=True, activation="gelu"
        )
        self.blocks = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm, self.head = nn.LayerNorm(32), nn.Linear(32, letters)
        for table in (self.embed, self.place):
            nn.init.normal_(table.weight, std=0.1)

    def forward(self, letters: Tensor) -> Tensor:
        length = letters.shape[1]
        h = self.embed(letters) + self.place(torch.arange(length))
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        return self.head(self.norm(self.blocks(h, mask=mask, is_causal=True)))


@case(None, data="text", net="transformer")
def letters_by_a_causal_transformer(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    text, letters = sentences(seed, n=280, length=20)
    net = Causal(letters, 20)
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
    doctor = watch(net, optimizer, task="lm")
    for _ in range(10):
        for x, y in batches(text[:220, :-1], text[:220, 1:], 16):
            logits = net(x)
            loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss, outputs=logits, targets=y, inputs=x)
        net.eval()
        with torch.no_grad():
            logits, y = net(text[220:, :-1]), text[220:, 1:]
            held_out = F.cross_entropy(logits.flatten(0, 1), y.flatten())
        net.train()
        schedule.step()
        doctor.epoch(held_out.item(), accuracy(logits, y))
    return verdict(doctor, accuracy(logits, y))


@case(None, data="text", net="embedding")
def reviews_as_bags_of_words(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    data = reviews(seed, n_train=800)
    net = nn.Sequential(nn.EmbeddingBag(60, 8, padding_idx=0), nn.Linear(8, 2))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    return train(net, optimizer, nn.CrossEntropyLoss(), data, epochs=8, tell="module")


@case(None, data="text", net="transformer")
def reviews_with_a_warmed_up_transformer(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    data = reviews(seed, n_train=800)
    net = TextTransformer(60, 2, width=16)
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 20))
    return train(
        net, optimizer, F.cross_entropy, data, epochs=4, tell="all", clip=1.0, schedule=schedule
    )


class Tagger(nn.Module):
    """A tag for every word."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(81, 16, padding_idx=PAD)
        self.rnn = nn.LSTM(16, 24, batch_first=True, bidirectional=True)
        self.head = nn.Linear(48, 4)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.rnn(self.embed(tokens))[0])


@case(None, data="text", net="lstm")
def tags_with_the_padding_left_out(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    g = source(seed)
    tokens = torch.randint(1, 81, (420, 14), generator=g)
    tags = 2 * (F.pad(tokens, (1, 0))[:, :-1] % 2) + tokens % 2
    outside = torch.arange(14) >= torch.randint(7, 15, (420, 1), generator=g)
    tokens, tags = tokens.masked_fill(outside, PAD), tags.masked_fill(outside, -100)
    net = Tagger()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    doctor = watch(net, optimizer)
    for _ in range(8):
        for x, y in batches(tokens[:320], tags[:320], 20):
            loss = F.cross_entropy(net(x).transpose(1, 2), y, ignore_index=-100)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss)
        with torch.no_grad():
            logits, y = net(tokens[320:]), tags[320:]
            held_out = F.cross_entropy(logits.transpose(1, 2), y, ignore_index=-100)
        real = y != -100
        doctor.epoch(held_out.item(), accuracy(logits[real], y[real]))
    return verdict(doctor, accuracy(logits[real], y[real]))


@case(None, data="series", net="lstm")
def a_forecast_with_clipped_gradients(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    windows = series(seed, 600).unfold(0, 17, 1)
    X, y = windows[:, :16, None], windows[:, 16:]
    net, loss_fn = Recurrent(nn.LSTM, 1, 24, 1), nn.MSELoss()
    optimizer = torch.optim.RMSprop(net.parameters(), lr=5e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
    doctor = watch(net, optimizer, loss_fn, task="regression")
    for _ in range(10):
        for x, target in batches(X[:450], y[:450], 32):
            loss = loss_fn(net(x), target)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
        schedule.step()
        with torch.no_grad():
            out = net(X[450:])
            doctor.epoch(loss_fn(out, y[450:]).item(), r2(out, y[450:]))
    return verdict(doctor, r2(out, y[450:]))


@case(None, data="series", net="conv1d")
def waves_by_convolutions_without_a_word_to_the_doctor(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    data = waves(seed)
    net = nn.Sequential(
        nn.Conv1d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool1d(2), nn.Conv1d(16, 16, 5, padding=2),
        nn.ReLU(), nn.AdaptiveMaxPool1d(1), nn.Flatten(), nn.Linear(16, 3),
    )  # fmt: skip
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    data = data._replace(X=data.X.transpose(1, 2), X_val=data.X_val.transpose(1, 2))
    return train(net, optimizer, F.cross_entropy, data, epochs=12, tell="nothing", report="never")


class Reverser(nn.Module):
    """Encoder and decoder; the decoder receives the right symbol before."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 16)
        self.encoder = nn.GRU(16, 64, batch_first=True)
        self.decoder = nn.GRU(16, 64, batch_first=True)
        self.head = nn.Linear(64, 11)

    def forward(self, source: Tensor, before: Tensor) -> Tensor:
        _, state = self.encoder(self.embed(source))
        return self.head(self.decoder(self.embed(before), state)[0])


@case(None, data="sequences", net="gru")
def sequences_written_backwards(seed: int) -> Diagnosis:
    torch.manual_seed(seed)
    x = torch.randint(1, 11, (1200, 4), generator=source(seed))
    y = x.flip(1)
    before = F.pad(y, (1, 0))[:, :-1]  # 0 starts
    net = Reverser()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
    doctor = watch(net, optimizer, task="seq")
    for _ in range(10):
        for rows in torch.randperm(1000).split(50):
            logits = net(x[rows], before[rows])
            loss = F.cross_entropy(logits.flatten(0, 1), y[rows].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss, outputs=logits, targets=y[rows])
        schedule.step()
        with torch.no_grad():
            logits = net(x[1000:], before[1000:])
            held_out = F.cross_entropy(logits.flatten(0, 1), y[1000:].flatten())
        doctor.epoch(held_out.item(), accuracy(logits, y[1000:]))
    return verdict(doctor, accuracy(logits, y[1000:]))
