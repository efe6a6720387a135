"""Images, token sequences, sensor sequences, ratings, arms and masks, drawn again for every seed.

All return ``X, y, X_val, y_val``. Shapes: N rows, T time, V vocabulary.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor

Split = tuple[Tensor, Tensor, Tensor, Tensor]
WORDS = 40


def rng(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(7919 + seed)


def cut(X: Tensor, y: Tensor, n: int, seed: int) -> Split:
    """Shuffle; the first n rows are for training."""
    order = torch.randperm(len(X), generator=rng(seed))
    return X[order[:n]], y[order[:n]], X[order[n:]], y[order[n:]]


def z(train: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """Both with the mean and spread of the first taken out."""
    return (train - train.mean(0)) / train.std(0), (other - train.mean(0)) / train.std(0)


@cache
def _digits() -> tuple[np.ndarray, np.ndarray]:
    return load_digits(return_X_y=True)


def digit_images(seed: int, n: int = 900, val: int = 350) -> Split:
    """Handwritten digits (N, 1, 8, 8), pixels brought to mean 0 and spread 1."""
    X, y = _digits()
    X = (torch.tensor(X, dtype=torch.float32).view(-1, 1, 8, 8) - 4.9) / 6.0
    X, y, X_val, y_val = cut(X, torch.tensor(y), n, seed)
    return X, y, X_val[:val], y_val[:val]


def properties(seed: int, n: int = 900) -> Split:
    """Digits as rows of 64 pixels; is it even, above four, prime, does it have a loop: (N, 4)."""
    X, y, X_val, y_val = digit_images(seed, n)
    table = torch.tensor([[d % 2 == 0, d > 4, d in (2, 3, 5, 7), d in (0, 6, 8, 9)]
                          for d in range(10)]).float()  # fmt: skip
    return X.flatten(1), table[y], X_val.flatten(1), table[y_val]


def commands(seed: int, n: int = 700, length: int = 12, val: int = 300) -> Split:
    """Token sequences (N, T) with one of four command words (1..4) somewhere: which one."""
    g = rng(seed)
    y = torch.randint(4, (n + val,), generator=g)
    X = torch.randint(5, WORDS, (n + val, length), generator=g)
    X[torch.arange(n + val), torch.randint(length, (n + val,), generator=g)] = y + 1
    return cut(X, y, n, seed)


def sensors(seed: int, n: int = 600, length: int = 10, noise: float = 0.1) -> Split:
    """Three channels (N, T, 3); the target (N, 1) is made of the first two channels' ends."""
    g = rng(seed)
    X = torch.randn(n + 250, length, 3, generator=g)
    y = X[:, -3:, 0].sum(1) - 1.5 * X[:, -2, 1].relu() + noise * torch.randn(n + 250, generator=g)
    X, y, X_val, y_val = cut(X, y[:, None], n, seed)
    y, y_val = z(y, y_val)
    return X, y, X_val, y_val


def arms(seed: int, n: int = 600, noise: float = 0.03) -> Split:
    """Two angles and two lengths of a robot's arm; where its hand is: (N, 2)."""
    g = rng(seed)
    a, b = 3 * torch.rand(2, n + 250, generator=g) - 1.5
    p, q = 0.5 + torch.rand(2, n + 250, generator=g)
    x = p * torch.cos(a) + q * torch.cos(a + b)
    h = p * torch.sin(a) + q * torch.sin(a + b)
    y = torch.stack([x, h], 1) + noise * torch.randn(n + 250, 2, generator=g)
    X, y, X_val, y_val = cut(torch.stack([a, b, p, q], 1), y, n, seed)
    X, X_val = z(X, X_val)
    y, y_val = z(y, y_val)
    return X, y, X_val, y_val


def ratings(seed: int, n: int = 1500, noise: float = 0.3) -> Split:
    """User and film (N, 2), numbers below 50 and 40; how the user likes the film."""
    g = rng(seed)
    users, films = torch.randn(50, 2, generator=g), torch.randn(40, 2, generator=g)
    like = users @ films.T + 0.5 * torch.randn(1, 40, generator=g)
    like = like / like.std() + noise * torch.randn(50, 40, generator=g)
    X = torch.cartesian_prod(torch.arange(50), torch.arange(40))
    return cut(X, like.flatten(), n, seed)


def grammar(seed: int, n: int = 300, length: int = 15, tokens: int = 12) -> tuple[Tensor, Tensor]:
    """Sentences (N, T) of tokens 1..V-1; the next token follows from the last two, mostly."""
    g = rng(seed)
    even, odd = (torch.randperm(tokens - 1, generator=g) for _ in range(2))
    said = [torch.randint(tokens - 1, (n + 100,), generator=g) for _ in range(2)]
    for _ in range(length - 2):
        follows = torch.where(said[-2] % 2 == 0, even[said[-1]], odd[said[-1]])
        slip = torch.randint(tokens - 1, (n + 100,), generator=g)
        said.append(torch.where(torch.rand(n + 100, generator=g) < 0.1, slip, follows))
    text = 1 + torch.stack(said, 1)
    return text[:n], text[n:]


def patches(seed: int, n: int = 200) -> Split:
    """Images (N, 1, 12, 12) with a bright and a dark rectangle; the class of every pixel."""
    g = rng(seed)
    y = torch.zeros(n + 80, 12, 12, dtype=torch.int64)
    for mask in y:
        for kind in (1, 2):
            top, left = torch.randint(8, (2,), generator=g).tolist()
            high, wide = torch.randint(3, 6, (2,), generator=g).tolist()
            mask[top : top + high, left : left + wide] = kind
    level = torch.tensor([0.0, 1.5, -1.5])[y]
    X = level + 0.5 * torch.randn(level.shape, generator=g)
    return cut(X[:, None], y, n, seed)


def passengers(seed: int, n: int = 260, window: int = 12) -> Split:
    """A monthly count between 100 and 600: a year of it (N, T, 1), and the next month (N, 1)."""
    t = torch.arange(n + 80 + window).float()
    level = 330 + 60 * torch.sin(t / 37)
    counts = level + 90 * torch.sin(2 * torch.pi * t / 12)
    counts = counts + 12 * torch.randn(len(t), generator=rng(seed))
    windows = counts.unfold(0, window + 1, 1)
    return cut(windows[:, :-1, None], windows[:, -1:], n, seed)


def orders(seed: int, n: int = 600, noise: float = 0.3) -> Split:
    """Twelve columns of unit scale; a curved function of five of them: (N, 1)."""
    g = rng(seed)
    X = torch.randn(n + 300, 12, generator=g)
    y = X[:, 0] * X[:, 1] + X[:, 2].abs() + torch.sin(2 * X[:, 3]) + 0.5 * X[:, 4]
    y = (y + noise * torch.randn(n + 300, generator=g))[:, None]
    X, y, X_val, y_val = cut(X, y, n, seed)
    y, y_val = z(y, y_val)
    return X, y, X_val, y_val
