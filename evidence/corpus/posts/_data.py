"""Small invented data sets; all return X, y, X_val, y_val. N rows, D columns, T time, C channels.

Columns come raw where people find them raw; ``zscore`` is what they should have called.
"""

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor

Split = tuple[Tensor, Tensor, Tensor, Tensor]
WHO = [
    "the king",
    "a bird",
    "my aunt",
    "the old cat",
    "no man",
    "our dog",
    "a thief",
    "the pen",
    "every fool",
]
DOES = ["likes", "catches", "sees", "forgets", "hides from", "sings to", "is worth", "outruns"]
WHAT = [
    "two eggs",
    "the sword",
    "a worm",
    "her gold",
    "rome",
    "nine words",
    "an island",
    "the sea",
    "bad luck",
]
LETTERS = sorted(set("".join(WHO + DOES + WHAT)) | set(" ."))


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(7000 + seed)


def halves(X, y, share: float = 0.25) -> Split:
    """The last rows are held out: all generators here draw rows independently."""
    X, y = torch.as_tensor(X), torch.as_tensor(y)
    X = X.float() if X.is_floating_point() else X
    y = y.float() if y.is_floating_point() else y
    n = int(len(X) * (1 - share))
    return X[:n], y[:n], X[n:], y[n:]


def zscore(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    mean, spread = a.mean(0), a.std(0).clamp(min=1e-6)
    return (a - mean) / spread, (b - mean) / spread


def houses(seed: int, n: int = 600, raw: bool = False) -> Split:
    """Area, rooms, year, distance, income of the quarter, latitude; the price (N, 1) in euros."""
    r = rng(seed)
    area, rooms = r.uniform(30, 250, n), r.integers(1, 8, n)
    year, distance = r.integers(1900, 2021, n), r.exponential(8, n)
    income, latitude = r.uniform(15e3, 120e3, n), r.uniform(47, 48, n)
    worth = area * (1 + income / 4e4) * (1 + 0.6 * np.exp(-distance / 4)) + 12 * rooms
    worth = worth * (0.7 + 0.3 * np.cos((year - 1900) / 19)) + 15 * r.normal(size=n)
    columns = np.stack([area, rooms, year, distance, income, latitude], 1)
    X, y, X_val, y_val = halves(columns, 900 * worth[:, None])
    if not raw:
        X, X_val = zscore(X, X_val)
        y, y_val = zscore(y, y_val)
    return X, y, X_val, y_val


def customers(seed: int, n: int = 800, columns: int = 10, noise: float = 0.2) -> Split:
    """Will a customer leave? Two columns together, one in waves and one by itself; y is 0 or 1."""
    r = rng(seed)
    X = r.normal(size=(n, columns))
    s = 1.5 * X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + 0.5 * X[:, 3] + noise * r.normal(size=n)
    return halves(X, (s > 0).astype(np.int64))


def parcels(seed: int, n: int = 700, classes: int = 4, spread: float = 0.9) -> Split:
    """Classes of two blobs each in six columns."""
    r = rng(seed)
    centres = r.normal(size=(2 * classes, 6)) * 2
    of = r.integers(2 * classes, size=n)
    return halves(centres[of] / 2 + spread / 2 * r.normal(size=(n, 6)), of % classes)


def handwriting(seed: int, n: int | None = 900) -> Split:
    """The digits of scikit-learn as images (N, 1, 8, 8) in [0, 1]."""
    images, y = load_digits(return_X_y=True)
    order = rng(seed).permutation(len(y))[:n]
    return halves(images[order].reshape(-1, 1, 8, 8) / 16, y[order])


def scenes(seed: int, n: int = 160, size: int = 16, radius: float = 3.5) -> Split:
    """Noisy images (N, 1, H, W) of one disc; y is its mask."""
    r = rng(seed)
    at = r.uniform(4, size - 4, size=(n, 2, 1, 1))
    grid = np.arange(size)
    far = (grid[None, :, None] - at[:, 0]) ** 2 + (grid[None, None, :] - at[:, 1]) ** 2
    mask = (far < radius**2).astype(np.float32)[:, None]
    return halves(mask + 0.5 * r.normal(size=mask.shape), mask)


def demand(seed: int, n: int = 400, window: int = 24, raw: bool = False) -> Split:
    """Hourly load of a grid: windows (N, T, 1), the next hour (N, 1); the last are held out."""
    r = rng(seed)
    t = np.arange(n + window)
    load = np.sin(2 * np.pi * t / 24) + 0.4 * np.sin(2 * np.pi * t / 12 + 1)
    load = load * (1 + 0.1 * np.cos(2 * np.pi * t / 168)) + 0.1 * r.normal(size=len(t))
    load = 42000 + 6500 * load if raw else load
    X = np.stack([load[i : i + window] for i in range(n)])[:, :, None]
    return halves(X, load[window:][:, None])


def reviews(seed: int, n: int = 500, length: int = 14) -> Split:
    """Token rows (N, T), 0 pads at the end: 1-8 praise, 9-16 blame, 17 turns round what follows."""
    r = rng(seed)
    X, y = np.zeros((n, length), dtype=np.int64), np.zeros(n, dtype=np.int64)
    for i in range(n):
        total = 0
        while total == 0:
            words = r.integers(1, 50, size=r.integers(5, length + 1))
            praise, blame = (words <= 8) * 1, ((words > 8) & (words <= 16)) * 1
            turned = np.concatenate([[1], np.where(words[:-1] == 17, -1, 1)])
            total = ((praise - blame) * turned).sum()
        X[i, : len(words)], y[i] = words, total > 0
    return halves(X, y)


def surnames(seed: int, n: int = 500, length: int = 9, languages: int = 3) -> Split:
    """Names as letters (N, T) of 1 to 20; each language has its own habits; y the language."""
    r = rng(seed)
    habits = r.dirichlet(np.full(20, 0.25), size=(languages, 20)).cumsum(-1)
    y = r.integers(languages, size=n)
    X = np.zeros((n, length), dtype=np.int64)
    X[:, 0] = r.integers(20, size=n)
    for t in range(1, length):
        X[:, t] = (r.random((n, 1)) > habits[y, X[:, t - 1]]).sum(1).clip(0, 19)
    return halves(X + 1, y)


def letters(seed: int, n: int = 300, length: int = 16) -> Split:
    """Windows of a text as numbers: X (N, T) and the same one letter later; none overlap."""
    r = rng(seed)
    text = ""
    while len(text) < n * (length + 1):
        text += f"{r.choice(WHO)} {r.choice(DOES)} {r.choice(WHAT)}. "
    code = np.array([LETTERS.index(c) for c in text[: n * (length + 1)]]).reshape(n, length + 1)
    return halves(code[:, :-1], code[:, 1:])


def topics(seed: int, n: int = 500, words: int = 30, labels: int = 5) -> Split:
    """Counts of words (N, D) and the several labels (N, 5) they speak for, as floats."""
    r = rng(seed)
    X = r.poisson(0.7, size=(n, words)).astype(np.float64)
    speaks = r.normal(size=(words, labels))
    s = (X - 0.7) @ speaks
    return halves(X, (s > s.std() * 0.3).astype(np.float64))


def gestures(seed: int, n: int = 320, length: int = 20, noise: float = 0.3) -> Split:
    """Three axes of a watch (N, T, 3): circle, shake, lift or rest."""
    r = rng(seed)
    y = r.integers(4, size=n)
    t = np.arange(length)[None] / length * 2 * np.pi
    p = r.uniform(0, 2 * np.pi, (n, 1))
    zero = np.zeros((n, length))
    kinds = [
        (np.sin(2 * t + p), np.cos(2 * t + p), zero),
        (np.sin(5 * t + p), zero, zero),
        (zero, t / 3 - 1 + 0 * p, np.sin(t + p)),
        (zero, zero, zero),
    ]
    X = np.stack([np.stack(k, -1) for k in kinds])[y, np.arange(n)]
    return halves(X + noise * r.normal(size=X.shape), y)


def spectra(seed: int, n: int = 400, length: int = 40, classes: int = 3) -> Split:
    """Curves (N, 1, T) with two peaks whose distance gives the substance."""
    r = rng(seed)
    y = r.integers(classes, size=n)
    at = r.uniform(5, 18, n)
    t = np.arange(length)[None]
    gap = 6 + 5 * y
    X = np.exp(-((t - at[:, None]) ** 2) / 3) + np.exp(-((t - (at + gap)[:, None]) ** 2) / 3)
    return halves((X + 0.15 * r.normal(size=X.shape))[:, None], y)
