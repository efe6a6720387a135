"""Small networks, as people write them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from evidence.corpus.styles._data import WORDS


class ConvNet(nn.Module):
    """Two convolutions and a head, after the tutorial."""

    def __init__(self, out: int = 10, width: int = 8, dropout: float = 0.0) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, width, 3, padding=1)
        self.conv2 = nn.Conv2d(width, 2 * width, 3, padding=1)
        self.drop = nn.Dropout(dropout)
        self.fc = nn.Linear(8 * width, out)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc(self.drop(torch.flatten(x, 1)))


class TextRNN(nn.Module):
    """Embedding, recurrent layer, head on the mean over time."""

    def __init__(self, kind: type = nn.GRU, out: int = 4, hidden: int = 24, words: int = WORDS):
        super().__init__()
        self.emb = nn.Embedding(words, 12)
        self.rnn = kind(12, hidden, batch_first=True)
        self.out = nn.Linear(hidden, out)

    def forward(self, tokens: Tensor) -> Tensor:
        hidden, _ = self.rnn(self.emb(tokens))
        return self.out(hidden.mean(1))


class SensorRNN(nn.Module):
    """A recurrent layer over channels, a head on the last state."""

    def __init__(self, kind: type = nn.LSTM, channels: int = 3, hidden: int = 24, out: int = 1):
        super().__init__()
        self.rnn = kind(channels, hidden, batch_first=True)
        self.head = nn.Linear(hidden, out)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.rnn(x)[0][:, -1])


class Attention(nn.Module):
    """One head of attention written by hand."""

    def __init__(self, width: int, causal: bool = False, axis: int = -1) -> None:
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.causal, self.axis = causal, axis

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = q @ k.transpose(1, 2) / q.shape[-1] ** 0.5  # (N, T, T)
        if self.causal:
            ahead = torch.ones_like(scores[0]).triu(1).bool()
            scores = scores.masked_fill(ahead, float("-inf"))
        return self.proj(scores.softmax(self.axis) @ v)


class Block(nn.Module):
    """Attention and a small perceptron, each added to its normalised input."""

    def __init__(self, width: int, causal: bool = False) -> None:
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.att = Attention(width, causal)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.att(self.n1(x))
        return x + self.mlp(self.n2(x))


class TinyGPT(nn.Module):
    """A language model over few tokens."""

    def __init__(self, tokens: int = 12, causal: bool = True, width: int = 24, out: int = 0):
        super().__init__()
        self.tok = nn.Embedding(tokens, width)
        self.pos = nn.Embedding(32, width)
        self.blocks = nn.Sequential(Block(width, causal), Block(width, causal))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, out or tokens)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tok(tokens) + self.pos(torch.arange(tokens.shape[1]))
        return self.head(self.norm(self.blocks(x)))


class TextTransformer(nn.Module):
    """A class of a token sequence, by torch's own encoder layer."""

    def __init__(self, out: int = 4, width: int = 16, dropout: float = 0.0) -> None:
        super().__init__()
        self.emb = nn.Embedding(WORDS, width)
        self.enc = nn.TransformerEncoderLayer(width, 2, 32, dropout, batch_first=True)
        self.out = nn.Linear(width, out)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.out(self.enc(self.emb(tokens)).mean(1))


class Factors(nn.Module):
    """A rating is the product of a user's and a film's vector."""

    def __init__(self, size: int = 4) -> None:
        super().__init__()
        self.user, self.film = nn.Embedding(50, size), nn.Embedding(40, size)
        self.bias = nn.Embedding(40, 1)
        for table in (self.user, self.film, self.bias):
            nn.init.normal_(table.weight, std=0.3)

    def forward(self, pair: Tensor) -> Tensor:
        u, f = pair[:, 0], pair[:, 1]
        return (self.user(u) * self.film(f)).sum(1) + self.bias(f).squeeze(1)


def dense(*sizes: int, act: type = nn.ReLU) -> nn.Sequential:
    layers: list[nn.Module] = []
    for i, o in zip(sizes, sizes[1:], strict=False):
        layers += [nn.Linear(i, o), act()]
    return nn.Sequential(*layers[:-1])
