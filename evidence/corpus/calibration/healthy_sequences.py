"""Healthy trainings on sequences: recurrent, causal, padded and masked rightly."""

import math

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR
from torch.utils.data import DataLoader, TensorDataset

from castalia.diagnose import Diagnosis, watch
from evidence.corpus.cases import case


def markov(seed, rows=500, length=12, tokens=8):
    """Sequences where each token has a usual successor, taken six times out of ten."""
    g = torch.Generator().manual_seed(seed)
    usual = torch.randperm(tokens, generator=g)
    x = torch.randint(tokens, (rows, length + 1), generator=g)
    for t in range(length):
        x[:, t + 1] = torch.where(torch.rand(rows, generator=g) < 0.6, usual[x[:, t]], x[:, t + 1])
    return x


def next_token_loss(logits, targets):
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


@case(None, data="sequence", net="lstm")
def an_lstm_tells_frequencies_apart(seed: int) -> Diagnosis:
    class Classifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(1, 24, batch_first=True)
            self.fc = nn.Linear(24, 3)

        def forward(self, x):
            out, _ = self.lstm(x)
            return self.fc(out[:, -1])

    torch.manual_seed(seed)
    y = torch.randint(0, 3, (700,))
    angle = 6.28 * torch.rand(700, 1) + (0.5 + 0.5 * y[:, None]) * torch.arange(14)
    X = (torch.sin(angle) + 0.15 * torch.randn(700, 14)).unsqueeze(-1)
    model = Classifier()
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    schedule = CosineAnnealingLR(optimizer, T_max=14)
    doctor = watch(model, optimizer, criterion)
    for _ in range(14):
        for xb, yb in DataLoader(TensorDataset(X[:550], y[:550]), batch_size=50, shuffle=True):
            optimizer.zero_grad()
            loss = criterion(model(xb), yb)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
            optimizer.step()
        schedule.step()
        with torch.no_grad():
            out = model(X[550:])
        score = (out.argmax(1) == y[550:]).float().mean().item()
        doctor.epoch(validation_loss=F.cross_entropy(out, y[550:]).item(), validation_score=score)
    return doctor.diagnosis()


@case(None, data="sequence", net="gru")
def a_tagger_of_packed_sentences_that_ignores_padding(seed: int) -> Diagnosis:
    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(20, 12, padding_idx=0)
            self.gru = nn.GRU(12, 20, batch_first=True, bidirectional=True)
            self.out = nn.Linear(40, 3)

        def forward(self, x, lengths):
            packed = pack_padded_sequence(self.embed(x), lengths, True, enforce_sorted=False)
            h, _ = pad_packed_sequence(self.gru(packed)[0], True, total_length=x.size(1))
            return self.out(h)

    torch.manual_seed(seed)
    x = torch.randint(1, 20, (600, 8))
    lengths = torch.randint(3, 9, (600,))
    pad = torch.arange(8) >= lengths[:, None]
    x[pad] = 0
    y = (x > 6).long() + (F.pad(x[:, 1:], (0, 1)) > x).long()
    y[pad] = -100
    model = Tagger()
    optimizer = optim.Adam(model.parameters(), lr=0.02)
    schedule = CosineAnnealingLR(optimizer, T_max=10)
    doctor = watch(model, optimizer)
    for _ in range(10):
        for idx in torch.randperm(480).split(48):
            logits = model(x[idx], lengths[idx])
            loss = F.cross_entropy(logits.transpose(1, 2), y[idx], ignore_index=-100)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss)
        schedule.step()
        with torch.no_grad():
            logits = model(x[480:], lengths[480:])
            val = F.cross_entropy(logits.transpose(1, 2), y[480:]).item()
        real = y[480:] != -100
        doctor.epoch(val, (logits.argmax(-1) == y[480:])[real].float().mean().item())
    return doctor.diagnosis()


@case(None, data="text", net="transformer")
def a_causal_language_model_with_tied_embeddings(seed: int) -> Diagnosis:
    """One weight used twice, a mask that is right, and a loss that cannot go below 1.3."""

    class Block(nn.Module):
        def __init__(self, dim):
            super().__init__()
            self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
            self.attn = nn.MultiheadAttention(dim, 2, batch_first=True)
            self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

        def forward(self, x, mask):
            h = self.ln1(x)
            x = x + self.attn(h, h, h, attn_mask=mask, need_weights=False)[0]
            return x + self.mlp(self.ln2(x))

    class LM(nn.Module):
        def __init__(self, vocab=8, dim=24, length=12):
            super().__init__()
            self.tok, self.pos = nn.Embedding(vocab, dim), nn.Embedding(length, dim)
            self.blocks = nn.ModuleList([Block(dim)])
            self.norm = nn.LayerNorm(dim)
            self.head = nn.Linear(dim, vocab, bias=False)
            nn.init.normal_(self.tok.weight, std=0.15)
            self.head.weight = self.tok.weight

        def forward(self, x):
            T = x.size(1)
            mask = torch.triu(torch.ones(T, T, dtype=torch.bool), diagonal=1)
            h = self.tok(x) + self.pos(torch.arange(T))
            for block in self.blocks:
                h = block(h, mask)
            return self.head(self.norm(h))

    torch.manual_seed(seed)
    text = markov(seed)
    x, y = text[:, :-1], text[:, 1:]
    model = LM()
    optimizer = optim.AdamW(model.parameters(), lr=0.02, weight_decay=0.01)
    schedule = LambdaLR(
        optimizer, lambda s: min(1, s / 10) * 0.5 * (1 + math.cos(math.pi * min(1, s / 180)))
    )
    doctor = watch(model, optimizer, task="lm")
    for _ in range(18):
        for idx in torch.randperm(400).split(40):
            loss = next_token_loss(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            doctor.log(loss=loss)
        with torch.no_grad():
            doctor.epoch(validation_loss=next_token_loss(model(x[400:]), y[400:]).item())
    return doctor.diagnosis()


@case(None, data="sequence", net="gru")
def a_series_forecast_from_its_windows(seed: int) -> Diagnosis:
    """Windows that overlap, split in time; only the loss is reported."""

    class Forecaster(nn.Module):
        def __init__(self):
            super().__init__()
            self.gru = nn.GRU(1, 20, batch_first=True)
            self.head = nn.Linear(20, 1)

        def forward(self, x):
            return self.head(self.gru(x)[1][-1])

    torch.manual_seed(seed)
    t = torch.arange(760.0)
    series = torch.sin(0.35 * t) + 0.5 * torch.sin(0.9 * t + seed) + 0.1 * torch.randn(760)
    windows = (series / series[:600].std()).unfold(0, 11, 1)
    X, y = windows[:, :10, None], windows[:, 10:]
    model = Forecaster()
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    schedule = CosineAnnealingLR(optimizer, T_max=15)
    doctor = watch(model, optimizer)
    for _ in range(15):
        for idx in torch.randperm(600).split(60):
            loss = torch.mean((model(X[idx]) - y[idx]) ** 2)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss)
        schedule.step()
        with torch.no_grad():
            doctor.epoch(validation_loss=torch.mean((model(X[610:]) - y[610:]) ** 2).item())
    return doctor.diagnosis()


@case(None, data="text", net="seq2seq")
def a_translation_with_teacher_forcing(seed: int) -> Diagnosis:
    """The target is the source with every token replaced by its partner and the order kept."""

    class Seq2Seq(nn.Module):
        def __init__(self, vocab=14, hidden=32):
            super().__init__()
            self.source, self.target = nn.Embedding(vocab, 16), nn.Embedding(vocab, 16)
            self.encoder = nn.GRU(16, hidden, batch_first=True)
            self.decoder = nn.GRU(16, hidden, batch_first=True)
            self.attend = nn.Linear(hidden, hidden)
            self.out = nn.Linear(2 * hidden, vocab)

        def forward(self, src, tgt):
            memory, h = self.encoder(self.source(src))
            state, _ = self.decoder(self.target(tgt), h)
            weights = F.softmax(self.attend(state) @ memory.transpose(1, 2), dim=-1)
            return self.out(torch.cat([state, weights @ memory], dim=-1))

    torch.manual_seed(seed)
    src = torch.randint(2, 14, (900, 5))
    partner = torch.cat([torch.arange(2), 2 + torch.randperm(12)])
    tgt = F.pad(partner[src], (1, 0), value=1)  # 1 starts a sentence
    model = Seq2Seq()
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    schedule = CosineAnnealingLR(optimizer, T_max=13)
    doctor = watch(model, optimizer, task="seq")
    for _ in range(13):
        for idx in torch.randperm(750).split(75):
            out = model(src[idx], tgt[idx, :-1])
            loss = next_token_loss(out, tgt[idx, 1:])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            doctor.log(loss=loss, outputs=out, targets=tgt[idx, 1:])
        schedule.step()
        with torch.no_grad():
            out = model(src[750:], tgt[750:, :-1])
        score = (out.argmax(-1) == tgt[750:, 1:]).float().mean().item()
        doctor.epoch(next_token_loss(out, tgt[750:, 1:]).item(), score)
    return doctor.diagnosis()


@case(None, data="text", net="transformer")
def a_sentence_classifier_with_a_padding_mask(seed: int) -> Diagnosis:
    class Classifier(nn.Module):
        def __init__(self, vocab=30, dim=24):
            super().__init__()
            self.embed = nn.Embedding(vocab, dim, padding_idx=0)
            layer = nn.TransformerEncoderLayer(
                dim, 2, 48, dropout=0.1, batch_first=True, norm_first=True
            )
            self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
            self.head = nn.Linear(dim, 2)

        def forward(self, x):
            pad = x == 0
            h = self.encoder(self.embed(x), src_key_padding_mask=pad)
            h = h.masked_fill(pad.unsqueeze(-1), 0).sum(1) / (~pad).sum(1, keepdim=True)
            return self.head(h)

    torch.manual_seed(seed)
    x = torch.randint(5, 30, (900, 12))
    y = torch.randint(0, 2, (900,))
    x[:, 0] = 1 + 2 * y + torch.randint(0, 2, (900,))  # a telling word, then shuffled away
    lengths = torch.randint(4, 13, (900, 1))
    order = torch.rand(900, 12).masked_fill(torch.arange(12) >= lengths, 2.0).argsort(1)
    x = x.gather(1, order).masked_fill(torch.arange(12) >= lengths, 0)
    model = Classifier()
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.AdamW(model.parameters(), lr=0.005)
    schedule = LambdaLR(optimizer, lambda s: min(1, (s + 1) / 15) * max(0.02, 1 - s / 140))
    doctor = watch(model, optimizer, criterion)
    for _ in range(10):
        model.train()
        for idx in torch.randperm(700).split(50):
            optimizer.zero_grad()
            criterion(model(x[idx]), y[idx]).backward()
            optimizer.step()
            schedule.step()
        model.eval()
        with torch.no_grad():
            out = model(x[700:])
        score = (out.argmax(1) == y[700:]).float().mean().item()
        doctor.epoch(validation_loss=F.cross_entropy(out, y[700:]).item(), validation_score=score)
    return doctor.diagnosis()


@case(None, data="text", net="cnn")
def a_causal_convolution_examined(seed: int) -> Diagnosis:
    from castalia.diagnose import examine

    class CausalConvLM(nn.Module):
        def __init__(self, vocab=8, dim=24):
            super().__init__()
            self.embed = nn.Embedding(vocab, dim)
            self.conv = nn.Conv1d(dim, dim, 2)
            self.out = nn.Linear(dim, vocab)

        def forward(self, x):
            h = F.pad(self.embed(x).transpose(1, 2), (1, 0))  # the past only
            return self.out(F.relu(self.conv(h)).transpose(1, 2))

    torch.manual_seed(seed)
    text = markov(seed, rows=700)
    x, y = text[:, :-1], text[:, 1:]
    model = CausalConvLM()
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    for _ in range(10):
        for idx in torch.randperm(560).split(56):
            optimizer.zero_grad()
            next_token_loss(model(x[idx]), y[idx]).backward()
            optimizer.step()
    return examine(
        model,
        next_token_loss,
        (x[:560], y[:560]),
        (x[560:], y[560:]),
        optimizer=optimizer,
        task="lm",
        seconds=5,
    )
