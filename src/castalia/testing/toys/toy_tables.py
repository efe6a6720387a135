"""Toy tables: rows of numbers, and signals in one of them."""

from __future__ import annotations

import numpy as np

__all__ = ["blobs", "counts", "echo", "moons", "plane", "sine"]

Data = tuple[np.ndarray, np.ndarray]


def moons(n: int = 400, noise: float = 0.15, seed: int = 0) -> Data:
    """Two interleaved half circles: no straight line parts them.

    >>> X, y = moons()
    >>> X.shape, sorted(set(y.tolist()))
    ((400, 2), [0, 1])
    """
    random = np.random.default_rng(seed)
    y = np.arange(n) % 2
    angle = random.uniform(0, np.pi, n)
    upper = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    lower = np.stack([1 - np.cos(angle), 0.5 - np.sin(angle)], axis=1)
    return np.where(y[:, None] == 0, upper, lower) + noise * random.normal(size=(n, 2)), y


def blobs(n: int = 300, classes: int = 3, seed: int = 0) -> Data:
    """Normal clouds around the corners of a regular polygon, one a class."""
    random = np.random.default_rng(seed)
    y = np.arange(n) % classes
    angle = 2 * np.pi * y / classes
    centres = 3 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return centres + random.normal(size=(n, 2)), y


def sine(n: int = 800, noise: float = 0.1, seed: int = 0) -> Data:
    """Nearly a whole period of a noisy sine; the best possible R2 is about 0.98."""
    random = np.random.default_rng(seed)
    x = random.uniform(-1, 1, n)
    return x[:, None], np.sin(3 * x) + noise * random.normal(size=n)


def plane(n: int = 200, noise: float = 0.1, seed: int = 0) -> Data:
    """A noisy plane over three features; the best possible R2 is about 0.998."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    return X, X @ [1.0, -2.0, 0.5] + 3 + noise * random.normal(size=n)


def counts(n: int = 400, seed: int = 0) -> Data:
    """Poisson counts whose log-rate is 1 + x."""
    random = np.random.default_rng(seed)
    x = random.uniform(-1, 1, n)
    return x[:, None], random.poisson(np.exp(1 + x)).astype(float)


def echo(n: int = 2000, noise: float = 0.1, seed: int = 0) -> Data:
    """A signal's own short echo, filter (0.8, -0.4, 0.2), in noise; the best R2 is about 0.99."""
    random = np.random.default_rng(seed)
    x = random.normal(size=n)
    return x[:, None], np.convolve(x, [0.8, -0.4, 0.2])[:n] + noise * random.normal(size=n)
