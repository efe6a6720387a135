"""Small data sets of several kinds, split into training and validation tensors.

All return ``X, y, X_val, y_val``; X float32, y int64 for classes and float32 otherwise.
Shapes: N rows, D columns, T time, C channels, H and W height and width.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import torch
from sklearn import datasets
from torch import Tensor

__all__ = [
    "SECONDS",
    "bars",
    "clusters",
    "digits",
    "echoes",
    "friedman",
    "markov",
    "moons",
    "split",
    "standardise",
    "table",
    "waves",
]

SECONDS = 5.0  # what a case of `examine` may take
Split = tuple[Tensor, Tensor, Tensor, Tensor]


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(1000 + seed)


def split(X: Tensor, y: Tensor, seed: int, share: float = 0.3) -> Split:
    """Shuffle, and hold a share of the rows out."""
    order = torch.randperm(len(X), generator=generator(seed))
    n = int(len(X) * (1 - share))
    return X[order[:n]], y[order[:n]], X[order[n:]], y[order[n:]]


def standardise(X: Tensor, X_val: Tensor) -> tuple[Tensor, Tensor]:
    """Scale columns to mean 0 and spread 1, as measured on the training rows."""
    mean, spread = X.mean(0), X.std(0)
    spread = torch.where(spread < 1e-6, torch.ones_like(spread), spread)
    return (X - mean) / spread, (X_val - mean) / spread


@lru_cache
def _bundled(name: str) -> tuple[np.ndarray, np.ndarray]:
    return getattr(datasets, f"load_{name}")(return_X_y=True)


def table(name: str, seed: int, *, scaled: bool = True, share: float = 0.3) -> Split:
    """One of scikit-learn's bundled tables: iris, wine, breast_cancer, diabetes."""
    X, y = _bundled(name)
    kind = torch.float32 if name == "diabetes" else torch.int64
    X, y, X_val, y_val = split(
        torch.tensor(X, dtype=torch.float32), torch.tensor(y).to(kind), seed, share
    )
    if scaled:
        X, X_val = standardise(X, X_val)
    if scaled and name == "diabetes":
        y, y_val = standardise(y, y_val)
    return X, y, X_val, y_val


def digits(
    seed: int, n: int | None = None, *, images: bool = False, scale: float = 1 / 16
) -> Split:
    """Handwritten digits in [0, 1]: (N, 64), or (N, 1, 8, 8) as images; n of them if given."""
    X, y = _bundled("digits")
    X, y, X_val, y_val = split(torch.tensor(X, dtype=torch.float32) * scale, torch.tensor(y), seed)
    if images:
        X, X_val = X.view(-1, 1, 8, 8), X_val.view(-1, 1, 8, 8)
    return X[:n], y[:n], X_val, y_val


def clusters(
    seed: int, n: int = 800, columns: int = 10, classes: int = 3, spread: float = 1.0
) -> Split:
    """Two Gaussian clusters a class, centres of spread 2: no linear model separates them."""
    g = generator(seed)
    centres = 2 * torch.randn(2 * classes, columns, generator=g)
    of = torch.randint(2 * classes, (n,), generator=g)
    X = centres[of] + spread * torch.randn(n, columns, generator=g)
    return _scaled(*split(X, of % classes, seed))


def _scaled(X: Tensor, y: Tensor, X_val: Tensor, y_val: Tensor) -> Split:
    X, X_val = standardise(X, X_val)
    return X, y, X_val, y_val


def moons(seed: int, n: int = 600, noise: float = 0.15) -> Split:
    """Two half moons in the plane."""
    X, y = datasets.make_moons(n, noise=noise, random_state=seed)
    return _scaled(*split(torch.tensor(X, dtype=torch.float32), torch.tensor(y), seed))


def friedman(seed: int, n: int = 800, noise: float = 0.5, columns: int = 8) -> Split:
    """Friedman's first function of five of the columns; targets of unit scale, shape (N, 1)."""
    X, y = datasets.make_friedman1(n, columns, noise=noise, random_state=seed)
    X, y, X_val, y_val = split(
        torch.tensor(X, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)[:, None], seed
    )
    y, y_val = standardise(y, y_val)
    return _scaled(X, y, X_val, y_val)


def waves(seed: int, n: int = 400, length: int = 12, classes: int = 3) -> Split:
    """Noisy sines (N, T, 1) whose frequency is the class."""
    g = generator(seed)
    y = torch.randint(classes, (n,), generator=g)
    phase = 2 * math.pi * torch.rand(n, 1, generator=g)
    time = torch.arange(length)[None, :] / length
    X = torch.sin(2 * math.pi * (y[:, None] + 1) * time + phase)
    X = X + 0.2 * torch.randn(n, length, generator=g)
    return split(X[:, :, None], y, seed)


def echoes(seed: int, n: int = 400, length: int = 12, lag: int = 5) -> Split:
    """Sequences (N, T, 1) of noise whose target (N, 1) is the value some steps before the end."""
    X = torch.randn(n, length, 1, generator=generator(seed))
    return split(X, X[:, -lag], seed)


def bars(seed: int, n: int = 500, size: int = 8, noise: float = 0.4) -> Split:
    """Images (N, 1, H, W) with a bright row, column or diagonal, somewhere: three classes."""
    g = generator(seed)
    y = torch.randint(3, (n,), generator=g)
    at = torch.randint(size, (n,), generator=g)
    X = noise * torch.randn(n, 1, size, size, generator=g)
    line = torch.arange(size)
    for i, (kind, k) in enumerate(zip(y.tolist(), at.tolist(), strict=True)):
        rows, columns = {
            0: (torch.full_like(line, k), line),
            1: (line, torch.full_like(line, k)),
            2: (line, (line + k) % size),
        }[kind]
        X[i, 0, rows, columns] += 1.0
    return split(X, y, seed)


def markov(seed: int, n: int = 300, length: int = 12, tokens: int = 8) -> Split:
    """Token sequences of a Markov chain: X (N, T) and y (N, T), the same one step later.

    Each token is followed by one of two, with probabilities 0.8 and 0.2: no model's loss can be
    below 0.50.
    """
    g = generator(seed)
    likely = torch.randperm(tokens, generator=g)
    other = (likely + 1 + torch.randint(tokens - 1, (tokens,), generator=g)) % tokens
    sequence = [torch.randint(tokens, (n,), generator=g)]
    for _ in range(length):
        usual = torch.rand(n, generator=g) < 0.8
        sequence.append(torch.where(usual, likely[sequence[-1]], other[sequence[-1]]))
    S = torch.stack(sequence, 1)
    return split(S[:, :-1], S[:, 1:], seed)
