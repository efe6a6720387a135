"""Toy sequences and series."""

from __future__ import annotations

import numpy as np

from castalia.data.trees import Tree

__all__ = ["beginnings", "formulas", "swings", "tides", "totals"]

Steps = list[np.ndarray]


def _noise(n: int, seed: int, channels: int = 1) -> tuple[np.random.Generator, Steps]:
    random = np.random.default_rng(seed)
    lengths = random.integers(3, 9, n)
    return random, [random.normal(size=(length, channels)) for length in lengths]


def beginnings(n: int = 240, seed: int = 0) -> tuple[Steps, np.ndarray]:
    """Noise of different lengths whose class is what the first step of its second channel says.

    >>> X, y = beginnings()
    >>> len(X), X[0].shape[1], sorted(set(y.tolist()))
    (240, 2, [0, 1])
    """
    _, X = _noise(n, seed, 2)
    y = np.array([int(x[0, 1] > 0) for x in X])
    for x, label in zip(X, y, strict=True):
        x[0, 1] = 2 * label - 1
    return X, y


def totals(n: int = 200, seed: int = 0, *, steps: bool = False) -> tuple[Steps, np.ndarray]:
    """Noise of different lengths, and its sum; or at each step whether the sum so far is above 0.

    >>> X, y = totals(steps=True)
    >>> len(X[0]) == len(y[0])
    True
    """
    _, X = _noise(n, seed)
    if not steps:
        return X, np.array([float(x.sum()) for x in X])
    y = np.empty(n, dtype=object)
    for place, x in enumerate(X):
        y[place] = (np.cumsum(x) > 0).astype(int)
    return X, y


def swings(n: int = 160, seed: int = 0) -> tuple[Steps, None]:
    """Noisy waves of one period and any phase, of different lengths; they go on predictably.

    >>> len(swings()[0])
    160
    """
    random, X = _noise(n, seed)
    for x in X:
        phase = random.uniform(0, 2 * np.pi)
        x[:] = 0.1 * np.sin(np.arange(len(x)) * 2 * np.pi / 6 + phase)[:, None] + 0.01 * x
    return X, None


def tides(n: int = 24, steps: int = 50, seed: int = 0) -> tuple[np.ndarray, None]:
    """Several series of two channels, waves in a little noise around levels of their own.

    >>> tides()[0].shape
    (24, 50, 2)
    """
    random = np.random.default_rng(seed)
    phase = random.uniform(0, 2 * np.pi, (n, 1, 2))
    level = random.normal(size=(n, 1, 2), scale=3)
    wave = np.sin(np.arange(steps)[:, None] * 2 * np.pi / 8 + phase)
    return level + wave + 0.1 * random.normal(size=wave.shape), None


def formulas(n: int = 300, depth: int = 3, seed: int = 0) -> tuple[list[Tree], np.ndarray]:
    """Formulas of and, or and not over the two truth values, every node labelled with its own.

    >>> X, y = formulas(3)
    >>> print(X[0], y[0])
    (1 1) 1
    """
    random = np.random.default_rng(seed)
    X = [_formula(random, depth) for _ in range(n)]
    return X, np.array([tree.label for tree in X])


def _formula(random: np.random.Generator, depth: int) -> Tree:
    kind = random.integers(4) if depth else 3
    if kind == 3:
        value = int(random.integers(2))
        return Tree(str(value), label=value)
    parts = [_formula(random, depth - 1) for _ in range(2 if kind < 2 else 1)]
    values = [part.label for part in parts]
    value = (min(values), max(values), 1 - values[0])[kind]
    return Tree(("and", "or", "not")[kind], parts, label=value)
