"""Small data sets with known answers: quick to fit, and a good score means something was learnt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from castalia.errors import InvalidParameter
from castalia.utils.text import did_you_mean, listing

__all__ = ["TOYS", "blobs", "chain", "counts", "echo", "moons", "plane", "sine", "toy"]

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


def chain(n: int = 400, seed: int = 0) -> tuple[list[str], None]:
    """Sentences of a Markov chain of six words, each with a usual successor.

    The chain's own perplexity on such texts, their ends included, is about 2.9; that of a model
    without context about 6.9.

    >>> chain()[0][:2]
    ['f a d', 'd e']
    """
    random = np.random.default_rng(seed)
    texts = []
    for _ in range(n):
        state = int(random.integers(6))
        text = ["abcdef"[state]]
        while random.random() < 0.9:
            state = (state + 1) % 6 if random.random() < 0.8 else int(random.integers(6))
            text.append("abcdef"[state])
        texts.append(" ".join(text))
    return texts, None


TOYS: dict[str, Callable[[], Any]] = {
    "moons": moons,
    "blobs": blobs,
    "sine": sine,
    "plane": plane,
    "counts": counts,
    "echo": echo,
    "chain": chain,
}


def toy(name: str) -> Any:
    """Return the toy problem of a name, as a catalogue record gives it.

    >>> toy("sine")[0].shape
    (800, 1)
    """
    if name not in TOYS:
        raise InvalidParameter(
            f"testing: `toy` must be {listing(TOYS)}; got {name!r}.{did_you_mean(name, TOYS)}"
        )
    return TOYS[name]()
