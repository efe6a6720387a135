"""Small data with something to learn, for scripts whose own data set cannot be had here."""

from __future__ import annotations

import functools
import re

import numpy as np


@functools.cache
def digits(size: int, colours: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return the 1,797 handwritten digits of scikit-learn as pictures of bytes, and their labels.

    Parameters
    ----------
    size
        Of a side.
    colours
        Whether each is painted in a colour on another, rather than white on black.
    """
    from sklearn.datasets import load_digits

    found = load_digits()
    grey = _enlarged(found.images / 16, size)
    if colours:
        rng = np.random.default_rng(0)
        front, back = rng.uniform(0.4, 1, (len(grey), 3)), rng.uniform(0, 0.4, (len(grey), 3))
        grey = grey[..., None] * front[:, None, None] + (1 - grey[..., None]) * back[:, None, None]
    return np.round(grey * 255).astype(np.uint8), found.target.astype(np.int64)


def _enlarged(images: np.ndarray, size: int) -> np.ndarray:
    """Interpolate linearly along both sides."""
    n = images.shape[1]
    at = np.clip((np.arange(size) + 0.5) * n / size - 0.5, 0, n - 1)
    low = np.minimum(at.astype(int), n - 2)
    weights = np.zeros((size, n))
    weights[np.arange(size), low] = 1 - (at - low)
    weights[np.arange(size), low + 1] = at - low
    return np.clip(np.einsum("ia,nab,jb->nij", weights, images, weights), 0, 1)


@functools.cache
def text(letters: int = 200_000) -> str:
    """Return English prose: what Python's own help says about its language."""
    from pydoc_data.topics import topics

    whole = "\n".join(topics[name] for name in sorted(topics))
    return whole.encode("ascii", "ignore").decode()[:letters]


def words(letters: int = 200_000) -> list[str]:
    """Return sentences of lower-case words, those that are rare as ``<unk>``."""
    lines = [" ".join(re.findall(r"[a-z]+|[.,]", one)) for one in text(letters).lower().split("\n")]
    lines = [line for line in lines if line.count(" ") > 3]
    counts: dict[str, int] = {}
    for word in " ".join(lines).split():
        counts[word] = counts.get(word, 0) + 1
    return [" ".join(w if counts[w] > 3 else "<unk>" for w in line.split()) for line in lines]


@functools.cache
def citations(n: int = 600, classes: int = 7, vocabulary: int = 300) -> tuple[np.ndarray, ...]:
    """Return a graph of papers: 0/1 words, classes, and pairs that cite each other.

    Papers of a class share words and cite each other more often than those of others.
    """
    rng = np.random.default_rng(0)
    y = rng.integers(0, classes, n)
    topic = rng.random((classes, vocabulary)) < 0.1
    x = rng.random((n, vocabulary)) < np.where(topic[y], 0.25, 0.02)
    same = y[:, None] == y[None]
    edges = np.triu(rng.random((n, n)) < np.where(same, 0.03, 0.002), 1)
    return x.astype(np.float32), y.astype(np.int64), np.argwhere(edges)


def sentence_pairs(n: int = 600) -> list[tuple[str, str, int]]:
    """Return pairs of sentences, and whether they speak of joy rather than of fear."""
    rng = np.random.default_rng(0)
    things = ("cat", "dog", "bird", "horse", "fish", "cow", "fox", "bear")
    deeds = (("fears", "hates", "loses", "flees"), ("likes", "loves", "finds", "greets"))
    found = []
    for joy in rng.integers(0, 2, n).tolist():
        a, b = rng.choice(things, 2)
        first = f"the {a} {rng.choice(deeds[joy])} the {rng.choice(things)} ."
        found.append((first, f"a {b} {rng.choice(deeds[joy])} something .", joy))
    return found


def tones(n: int = 600, classes: int = 10, rate: int = 22050) -> tuple[np.ndarray, np.ndarray]:
    """Return a second of sound each: a noisy tone, whose height is the class."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, classes, n)
    heights = 200 * 1.5 ** (y + rng.uniform(-0.2, 0.2, n))
    time = np.arange(rate) / rate
    sound = np.sin(2 * np.pi * (heights[:, None] * time + rng.random((n, 1))))
    return (sound + 0.3 * rng.standard_normal((n, rate))).astype(np.float32), y.astype(np.int64)
