"""Data of many kinds, made up or bundled with scikit-learn: ``x, y, x_val, y_val``."""

import math

import numpy as np
import torch
from sklearn import datasets
from torch import Tensor

Four = tuple[Tensor, Tensor, Tensor, Tensor]


def rng(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(40_000 + seed)


def halves(x: Tensor, y: Tensor, seed: int, share: float = 0.75) -> Four:
    order = torch.randperm(len(x), generator=rng(seed + 7))
    a, b = order[: int(share * len(x))], order[int(share * len(x)) :]
    return x[a], y[a], x[b], y[b]


def scaled(data: Four, targets: bool = False) -> Four:
    """Inputs, and targets if asked, to mean 0 and spread 1 of the training rows."""
    x, y, x_val, y_val = data
    m, s = x.mean(0), x.std(0) + 1e-8
    if targets:
        y, y_val = (y - y.mean(0)) / y.std(0), (y_val - y.mean(0)) / y.std(0)
    return (x - m) / s, y, (x_val - m) / s, y_val


def mnist(seed: int, n: int = 900) -> Four:
    """Digits of 8 by 8 in [0, 1], (N, 1, 8, 8)."""
    x, y = datasets.load_digits(return_X_y=True)
    x = torch.tensor(x, dtype=torch.float32).view(-1, 1, 8, 8) / 16
    x, y, x_val, y_val = halves(x, torch.tensor(y), seed)
    return x[:n], y[:n], x_val, y_val


def cifar(seed: int, n: int = 640, classes: int = 4, noise: float = 0.5) -> Four:
    """Coloured stripes in a direction that is the class, (N, 3, 12, 12)."""
    g = rng(seed)
    y = torch.randint(classes, (n,), generator=g)
    angle = math.pi * y / classes + 0.1 * torch.randn(n, generator=g)
    row, col = torch.meshgrid(torch.arange(12.0), torch.arange(12.0), indexing="ij")
    along = angle.cos()[:, None, None] * row + angle.sin()[:, None, None] * col
    wave = torch.sin(1.3 * along + 6.28 * torch.rand(n, 1, 1, generator=g))
    x = wave[:, None] * torch.rand(n, 3, 1, 1, generator=g)
    return halves(x + noise * torch.randn(x.shape, generator=g), y, seed)


def sklearn_table(name: str, seed: int) -> Four:
    x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    y = torch.tensor(y, dtype=torch.float32) if name == "diabetes" else torch.tensor(y)
    return halves(torch.tensor(x, dtype=torch.float32), y, seed)


def housing(seed: int, n: int = 600) -> Four:
    """Area, rooms, age, distance, income as they are; price in money, shape (N, 1)."""
    g = rng(seed)
    u = torch.rand(n, 5, generator=g)
    area, rooms, age = 40 + 160 * u[:, 0], (1 + 6 * u[:, 1]).floor(), 80 * u[:, 2]
    far, income = 30 * u[:, 3], 20_000 + 80_000 * u[:, 4]
    price = 2500 * area * (1.4 - far / 40) + 9000 * rooms + 1500 * (age - 40).abs() + income
    price = price + 15_000 * torch.randn(n, generator=g)
    return halves(torch.stack([area, rooms, age, far, income], 1), price[:, None], seed)


def churn(seed: int, n: int = 800, rare: float = 0.5, noise: float = 0.5) -> Four:
    """Ten standard columns; who leaves depends on products of them. Labels int64."""
    g = rng(seed)
    x = torch.randn(n, 10, generator=g)
    s = 2 * x[:, 0] * x[:, 1] + x[:, 2] - x[:, 3] + noise * torch.randn(n, generator=g)
    return halves(x, (s > s.quantile(1 - rare)).long(), seed)


def spiral(seed: int, n: int = 600, noise: float = 0.1) -> Four:
    """Three arms in the plane, as in a well-known course."""
    g = rng(seed)
    y = torch.randint(3, (n,), generator=g)
    r = torch.rand(n, generator=g)
    t = 4 * r + 2.09 * y + noise * torch.randn(n, generator=g)
    x = torch.stack([r * t.sin(), r * t.cos()], 1)
    return halves(2 * x, y, seed)


def series(seed: int, n: int = 500, window: int = 16, noise: float = 0.1) -> Four:
    """Windows (N, T, 1) of two sines and noise; the next value (N, 1). Cut by time."""
    g = rng(seed)
    t = torch.arange(n + window)
    s = torch.sin(0.35 * t) + 0.5 * torch.sin(0.11 * t) + noise * torch.randn(len(t), generator=g)
    x = s.unfold(0, window, 1)[:n, :, None]
    y = s[window : window + n, None]
    cut = int(0.75 * n)
    return x[:cut], y[:cut], x[cut:], y[cut:]


def reviews(seed: int, n: int = 600, length: int = 16, words: int = 80) -> Four:
    """Words (N, T), 0 is padding at the end; is the sum of the words' moods positive?"""
    g = rng(seed)
    mood = torch.randn(words, generator=g)
    mood[0] = 0
    x = torch.randint(1, words, (n, length), generator=g)
    long = torch.randint(5, length + 1, (n, 1), generator=g)
    x = torch.where(torch.arange(length) < long, x, 0)
    return halves(x, (mood[x].sum(1) > 0).long(), seed)


def adding(seed: int, n: int = 600, length: int = 30) -> Four:
    """Sequences (N, T, 2) of numbers and marks; the sum of the two marked ones, (N, 1)."""
    g = rng(seed)
    x = torch.rand(n, length, 2, generator=g)
    x[:, :, 1] = 0
    first = torch.randint(length // 2, (n,), generator=g)
    second = length // 2 + torch.randint(length // 2, (n,), generator=g)
    rows = torch.arange(n)
    x[rows, first, 1] = x[rows, second, 1] = 1
    return halves(x, (x[:, :, 0] * x[:, :, 1]).sum(1, keepdim=True), seed)


def shifted(seed: int, n: int = 500, length: int = 10, words: int = 8) -> Four:
    """Tokens (N, T) and a tag for each: this token plus the one before, modulo `words`."""
    x = torch.randint(words, (n, length), generator=rng(seed))
    before = torch.cat([torch.zeros(n, 1, dtype=torch.long), x[:, :-1]], 1)
    return halves(x, (x + before) % words, seed)


def poem(seed: int, n: int = 260, length: int = 24) -> tuple[Tensor, Tensor, int]:
    """Letters of made-up sentences: pieces to train on, pieces to validate on, alphabet size."""
    draw = np.random.default_rng(40_000 + seed)
    parts = [["the cat ", "a dog ", "my aunt ", "the king "], ["eats ", "sees ", "likes ", "had "]]
    parts.append(["a red apple. ", "the moon. ", "an old song. ", "two fish. "])
    text = "".join(p[draw.integers(4)] for _ in range(n) for p in parts)
    letters = sorted(set(text))
    ids = torch.tensor([letters.index(c) for c in text])
    pieces = ids[: len(ids) // (length + 1) * (length + 1)].view(-1, length + 1)
    cut = int(0.8 * len(pieces))
    return pieces[:cut], pieces[cut:], len(letters)


def topics(seed: int, n: int = 600, labels: int = 5) -> Four:
    """Twenty columns and five labels of which several may hold; y float (N, 5)."""
    g = rng(seed)
    x = torch.randn(n, 20, generator=g)
    y = (torch.tanh(x @ torch.randn(20, labels, generator=g)) > 0.2).float()
    return halves(x, y, seed)


def citations(seed: int, n: int = 240, classes: int = 3) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """A graph of papers: features (N, 16), normalised adjacency (N, N), classes, who is trained."""
    g = rng(seed)
    y = torch.randint(classes, (n,), generator=g)
    same = y[:, None] == y[None]
    a = (torch.rand(n, n, generator=g) < torch.where(same, 0.08, 0.01)).float()
    a = ((a + a.T) > 0).float().fill_diagonal_(1)
    x = torch.randn(n, 16, generator=g)
    x[:, :classes] += 0.7 * torch.eye(classes)[y]
    d = a.sum(1).rsqrt()
    return x, d[:, None] * a * d[None], y, torch.rand(n, generator=g) < 0.5
