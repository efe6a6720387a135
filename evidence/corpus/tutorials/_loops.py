"""Loops that count steps, and small networks that several trainings share."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from evidence.corpus.programs._loops import accuracy


def by_steps(
    model, optimizer, loss_of, data, steps=300, batch=32, every=50, metric=accuracy, schedule=None
) -> float:
    """Epochs are not mentioned: so many steps, a validation every few."""
    x, y, x_val, y_val = data
    order = torch.randperm(len(x))
    at = 0
    for step in range(1, steps + 1):
        if at + batch > len(x):
            order, at = torch.randperm(len(x)), 0
        rows, at = order[at : at + batch], at + batch
        model.train()
        optimizer.zero_grad(set_to_none=True)
        loss_of(model(x[rows]), y[rows]).backward()
        optimizer.step()
        if schedule is not None:
            schedule.step()
        if step % every == 0:
            model.eval()
            with torch.no_grad():
                loss_of(model(x_val), y_val)
    model.eval()
    with torch.no_grad():
        return metric(model(x_val), y_val)


def whole(model, optimizer, loss_of, data, epochs=200, metric=accuracy, every=20) -> float:
    """All rows at once, as the first chapter of a course does it."""
    x, y, x_val, y_val = data
    for epoch in range(epochs):
        model.train()
        loss = loss_of(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if epoch % every == 0:
            model.eval()
            with torch.inference_mode():
                loss_of(model(x_val), y_val)
    model.eval()
    with torch.no_grad():
        return metric(model(x_val), y_val)


class ConvNet(nn.Module):
    """Two blocks of convolution, normalisation, activation and pooling; a linear head."""

    def __init__(self, classes: int = 10, size: int = 12, norm: Callable = nn.BatchNorm2d):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            norm(8),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1),
            norm(16),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classifier = nn.Linear(16 * (size // 4) ** 2, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.features(x).flatten(1))


class CharModel(nn.Module):
    """Letters in, logits of the next letters out; the state is handed on."""

    def __init__(self, letters: int, hidden: int = 48, kind: Callable = nn.GRU):
        super().__init__()
        self.embed = nn.Embedding(letters, 16)
        self.rnn = kind(16, hidden, batch_first=True)
        self.out = nn.Linear(hidden, letters)

    def forward(self, x: Tensor, state=None):
        h, state = self.rnn(self.embed(x), state)
        return self.out(h), state


class Decoder(nn.Module):
    """A language model of two blocks of causal attention."""

    def __init__(self, letters: int, length: int, dim: int = 32, causal: bool = True):
        super().__init__()
        self.token = nn.Embedding(letters, dim)
        self.place = nn.Parameter(0.02 * torch.randn(length, dim))
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(dim, 4, 2 * dim, 0.0, batch_first=True, norm_first=True)
            for _ in range(2)
        )
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, letters)
        self.causal = causal

    def forward(self, x: Tensor) -> Tensor:
        h = self.token(x) + self.place[: x.shape[1]]
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        for block in self.blocks:
            h = block(h, src_mask=mask if self.causal else None)
        return self.head(self.norm(h))


class Reverser(nn.Module):
    """Encoder and decoder, both GRUs; the right answer is fed in while training."""

    def __init__(self, digits: int = 9, hidden: int = 64):
        super().__init__()
        self.embed = nn.Embedding(digits, 16)
        self.encoder = nn.GRU(16, hidden, batch_first=True)
        self.decoder = nn.GRU(16, hidden, batch_first=True)
        self.out = nn.Linear(hidden, digits)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        _, state = self.encoder(self.embed(x))
        before = torch.cat([torch.zeros_like(y[:, :1]), y[:, :-1]], 1)
        return self.out(self.decoder(self.embed(before), state)[0])


class Shopper(nn.Module):
    """Embeddings of the categories beside the numbers."""

    def __init__(self, hidden: int = 32):
        super().__init__()
        self.city, self.product = nn.Embedding(12, 4), nn.Embedding(6, 3)
        self.body = nn.Sequential(
            nn.Linear(11, hidden), nn.ReLU(), nn.Dropout(0.1), nn.Linear(hidden, 1)
        )

    def forward(self, ids: Tensor, x: Tensor) -> Tensor:
        parts = [self.city(ids[:, 0]), self.product(ids[:, 1]), x]
        return self.body(torch.cat(parts, 1)).squeeze(1)


def per_letter(out: Tensor, y: Tensor) -> Tensor:
    return F.cross_entropy(out.flatten(0, 1), y.flatten())


def hits(out: Tensor, y: Tensor) -> float:
    """Share of the positions that are right."""
    return (out.argmax(-1) == y).float().mean().item()
