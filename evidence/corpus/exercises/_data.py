"""Small data sets of many kinds, drawn or split again for every seed."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from sklearn import datasets
from torch import Tensor

PAD, UNKNOWN = 0, 1


class Split(NamedTuple):
    """Training rows and validation rows."""

    X: Tensor
    y: Tensor
    X_val: Tensor
    y_val: Tensor


def source(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def split(X: Tensor, y: Tensor, seed: int, n_train: int) -> Split:
    order = torch.randperm(len(X), generator=source(seed))
    train, val = order[:n_train], order[n_train:]
    return Split(X[train], y[train], X[val], y[val])


def standardised(part: Split, targets: bool = False) -> Split:
    """Return the columns (and targets) with the mean and spread of the training rows taken out."""
    X, y, X_val, y_val = part
    mean, spread = X.mean(0), X.std(0) + 1e-6
    X, X_val = (X - mean) / spread, (X_val - mean) / spread
    if targets:
        middle, scale = y.mean(0), y.std(0)
        y, y_val = (y - middle) / scale, (y_val - middle) / scale
    return Split(X, y, X_val, y_val)


@cache
def _bundled(name: str) -> tuple[np.ndarray, np.ndarray]:
    return getattr(datasets, f"load_{name}")(return_X_y=True)


def digits(seed: int, n_train: int = 1000, flat: bool = False) -> Split:
    """Handwritten digits with pixels in [0, 1], as (N, 1, 8, 8) or as (N, 64)."""
    X, y = _bundled("digits")
    pixels = torch.tensor(X / 16, dtype=torch.float32)
    part = split(pixels if flat else pixels.view(-1, 1, 8, 8), torch.tensor(y), seed, n_train)
    return part._replace(X_val=part.X_val[:400], y_val=part.y_val[:400])


def cancer(seed: int, n_train: int = 400) -> Split:
    """Thirty measurements of cell nuclei in their own units; is the tumour benign."""
    X, y = _bundled("breast_cancer")
    return split(torch.tensor(X, dtype=torch.float32), torch.tensor(y), seed, n_train)


def wine(seed: int, n_train: int = 130) -> Split:
    """Thirteen chemical measurements in their own units; one of three growers."""
    X, y = _bundled("wine")
    return split(torch.tensor(X, dtype=torch.float32), torch.tensor(y), seed, n_train)


def diabetes(seed: int, n_train: int = 340) -> Split:
    """Ten standardised measurements; progression of the disease between 25 and 346."""
    X, y = _bundled("diabetes")
    X = X / X.std(0)
    return split(torch.tensor(X).float(), torch.tensor(y).float()[:, None], seed, n_train)


def friedman(seed: int, n_train: int = 600, columns: int = 8) -> Split:
    """Friedman's first function of standardised columns, its values standardised: (N, 1)."""
    X, y = datasets.make_friedman1(n_train + 300, columns, noise=0.5, random_state=seed)
    rows = split(torch.tensor(X).float(), torch.tensor(y).float()[:, None], seed, n_train)
    return standardised(rows, targets=True)


def houses(seed: int, n_train: int = 500) -> Split:
    """Standardised columns of houses, and prices in dollars: (N, 1)."""
    g = source(seed)
    X = torch.randn(n_train + 250, 6, generator=g)
    size, age, rooms, distance, garden, _ = X.T
    worth = size + 0.3 * size * rooms - 0.4 * age - 0.8 * distance.tanh() + 0.2 * garden.relu()
    price = 280_000 + 90_000 * worth + 10_000 * torch.randn(len(X), generator=g)
    return split(X, price[:, None], seed, n_train)


def rings(seed: int, n_train: int = 500) -> Split:
    """Two classes, one around the other: two columns and six that say nothing."""
    X, y = datasets.make_circles(n_train + 300, noise=0.08, factor=0.45, random_state=seed)
    X = np.hstack([X, np.random.default_rng(seed).normal(0, 0.5, (len(X), 2))])
    return standardised(split(torch.tensor(X).float(), torch.tensor(y), seed, n_train))


def clouds(seed: int, n_train: int = 500, classes: int = 4, spread: float = 1.0) -> Split:
    """Normal clouds, several to a class, in ten columns."""
    X, y = datasets.make_classification(
        n_train + 400,
        10,
        n_informative=6,
        n_redundant=0,
        n_classes=classes,
        n_clusters_per_class=2,
        class_sep=2.0 / spread,
        flip_y=0.0,
        random_state=seed,
    )
    return standardised(split(torch.tensor(X).float(), torch.tensor(y), seed, n_train))


def waves(seed: int, n_train: int = 400, length: int = 32) -> Split:
    """Sines, square waves and saw teeth of any phase and pitch: (N, T, 1) in three classes."""
    g = source(seed)
    n = n_train + 200
    y = torch.randint(3, (n,), generator=g)
    phase, pitch = torch.rand(n, 1, generator=g), 2 + 2 * torch.rand(n, 1, generator=g)
    t = (phase + pitch * torch.arange(length) / length) % 1  # (N, T)
    sine = torch.sin(2 * torch.pi * t)
    kinds = torch.stack([sine, sine.sign(), 2 * t - 1])
    X = kinds[y, torch.arange(n)] + 0.15 * torch.randn(n, length, generator=g)
    return split(X[..., None], y, seed, n_train)


def reviews(seed: int, n_train: int = 500, words: int = 60, length: int = 16) -> Split:
    """Sentences of word numbers padded with 0; does praise (2..11) outweigh blame (12..21)."""
    g = source(seed)
    n = n_train + 300
    y = torch.randint(2, (n,), generator=g)
    neutral = torch.randint(22, words, (n, length), generator=g)
    praise = torch.randint(2, 12, (n, length), generator=g)
    blame = torch.randint(12, 22, (n, length), generator=g)
    chance = torch.rand(n, length, generator=g)
    likely, rare = (
        torch.where(y[:, None] == 1, praise, blame),
        torch.where(y[:, None] == 1, blame, praise),
    )
    X = torch.where(chance < 0.4, likely, torch.where(chance > 0.9, rare, neutral))
    lengths = torch.randint(length // 2, length + 1, (n, 1), generator=g)
    X[torch.arange(length) >= lengths] = PAD
    return split(X, y, seed, n_train)


def sentences(seed: int, n: int = 400, length: int = 24) -> tuple[Tensor, int]:
    """Return texts of a small grammar as numbers of letters, (N, T), and how many letters."""
    g = np.random.default_rng(seed)
    who = ["the cat", "a bird", "my friend", "the old man", "one child"]
    does = ["sees", "likes", "follows", "hears", "knows"]
    whom = ["the moon", "a river", "his song", "the garden", "no one"]
    text = " ".join(
        f"{g.choice(who)} {g.choice(does)} {g.choice(whom)}." for _ in range(n * length // 20)
    )
    letters = sorted(set(text))
    numbers = torch.tensor([letters.index(letter) for letter in text])
    return numbers[: len(numbers) // length * length].view(-1, length), len(letters)


def series(seed: int, n: int = 800) -> Tensor:
    """One year of an hourly load: two periods, a little noise."""
    t = torch.arange(n).float()
    noise = torch.randn(n, generator=source(seed))
    return torch.sin(t / 3.8) + 0.5 * torch.sin(t / 11.3) + 0.1 * noise
