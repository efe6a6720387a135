"""Small data sets with known answers: quick to fit, and a good score means something was learnt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from castalia.data.images import Boxes
from castalia.errors import InvalidParameter
from castalia.utils.text import did_you_mean, listing

__all__ = [
    "TOYS",
    "blobs",
    "chain",
    "counts",
    "echo",
    "moons",
    "opinions",
    "plane",
    "reviews",
    "questions",
    "reversal",
    "scenes",
    "shapes",
    "sine",
    "stripes",
    "textures",
    "tagged",
    "tones",
    "topics",
    "toy",
]

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


def shapes(n: int = 64, size: int = 24, noise: float = 20, seed: int = 0) -> Data:
    """Noisy grey pictures with a square and a disc each, and their masks: 0 ground, 1, 2.

    The square is darker than the ground and the disc, which lies above it, brighter, each by three
    deviations of the noise: the neighbourhood of a pixel tells more than the pixel.

    >>> X, y = shapes(8)
    >>> X.shape, X.dtype, y.shape, sorted(set(y.ravel().tolist()))
    ((8, 24, 24), dtype('uint8'), (8, 24, 24), [0, 1, 2])
    """
    random = np.random.default_rng(seed)
    middle = random.uniform(0.2 * size, 0.8 * size, (2, 2, n, 1, 1))  # square and disc, row, column
    reach = random.uniform(0.15 * size, 0.25 * size, (2, n, 1, 1))
    rows, columns = np.arange(size)[:, None], np.arange(size)
    down, across = np.abs(rows - middle[:, 0]), np.abs(columns - middle[:, 1])  # (2, n, size, 1)
    y = np.zeros((n, size, size), dtype=np.uint8)
    y[np.maximum(down[0], across[0]) <= reach[0]] = 1
    y[np.hypot(down[1], across[1]) <= reach[1]] = 2
    X = np.array([128, 68, 188])[y] + noise * random.normal(size=y.shape)
    return X.clip(0, 255).astype(np.uint8), y


def stripes(n: int = 240, size: int = 12, noise: float = 0.3, seed: int = 0) -> Data:
    """Grey pictures of waves that run across, down or aslant, of any phase and in noise.

    No pixel tells the class; a 3 x 3 filter nearly does.

    >>> X, y = stripes()
    >>> X.shape, X.dtype, sorted(set(y.tolist()))
    ((240, 12, 12), dtype('uint8'), [0, 1, 2])
    """
    random = np.random.default_rng(seed)
    y = np.arange(n) % 3
    down, across = np.mgrid[:size, :size]
    direction = np.array([[1.0, 0.0], [0.0, 1.0], [0.7, 0.7]])[y]  # (N, 2)
    way = direction[:, :1, None] * down + direction[:, 1:, None] * across  # (N, H, W)
    wave = np.sin(2 * np.pi * way / 4 + random.uniform(0, 2 * np.pi, (n, 1, 1)))
    pixels = 0.5 + 0.25 * wave + 0.25 * noise * random.normal(size=wave.shape)
    return (255 * pixels.clip(0, 1)).astype(np.uint8), y


def textures(n: int = 6, size: int = 16, seed: int = 0) -> Data:
    """Colour pictures of waves of one colour on another; y tells steep from flat ones.

    >>> X, y = textures()
    >>> X.shape, X.dtype, y.tolist()
    ((6, 16, 16, 3), dtype('uint8'), [0, 1, 0, 1, 0, 1])
    """
    random = np.random.default_rng(seed)
    y = np.arange(n) % 2
    down, across = np.mgrid[:size, :size]
    way = np.where(y[:, None, None] == 0, down, across)  # (N, H, W)
    wave = 0.5 + 0.5 * np.sin(way * random.uniform(0.8, 1.6, (n, 1, 1)))
    colours = random.uniform(0, 255, (2, n, 1, 1, 3))
    X = wave[..., None] * colours[0] + (1 - wave[..., None]) * colours[1]
    return (X + 5 * random.normal(size=X.shape)).clip(0, 255).astype(np.uint8), y


def tones(n: int = 240, length: int = 32, noise: float = 0.3, seed: int = 0) -> Data:
    """Signals of a low, a middle or a high tone, of any phase and in noise.

    >>> X, y = tones()
    >>> X.shape, sorted(set(y.tolist()))
    ((240, 32), [0, 1, 2])
    """
    random = np.random.default_rng(seed)
    y = np.arange(n) % 3
    period = np.array([10.0, 6.0, 4.0])[y, None]
    phase = random.uniform(0, 2 * np.pi, (n, 1))
    wave = np.sin(2 * np.pi * np.arange(length) / period + phase)
    return wave + noise * random.normal(size=wave.shape), y


def scenes(n: int = 120, size: int = 32, seed: int = 0) -> Data:
    """Colour pictures of one to three squares and discs in noise; y holds their ``Boxes``.

    Squares are reddish, discs bluish, 8 to 14 pixels wide; they do not touch. y is an array of
    objects.

    >>> X, y = scenes()
    >>> X.shape, X.dtype, y[0].labels.tolist(), y[0].corners.shape
    ((120, 32, 32, 3), dtype('uint8'), ['square'], (1, 4))
    """
    random = np.random.default_rng(seed)
    X = random.integers(100, 140, (n, size, size, 3)).astype(np.uint8)
    y = np.empty(n, dtype=object)
    down, across = np.mgrid[:size, :size] + 0.5
    for picture in range(n):
        labels, corners = [], np.zeros((0, 4), dtype=np.float32)
        for _ in range(random.integers(1, 4)):
            side = random.integers(8, 15)
            x1, y1 = random.integers(0, size - side + 1, 2)
            box = np.array([x1, y1, x1 + side, y1 + side], dtype=np.float32)
            apart = (box[:2] > corners[:, 2:]) | (box[2:] < corners[:, :2])
            if not apart.any(axis=1).all():
                continue
            far = np.stack([abs(across - box[::2].mean()), abs(down - box[1::2].mean())])
            square = random.random() < 0.5
            reach = far.max(axis=0) if square else np.hypot(*far)
            colour = np.array([200, 80, 40] if square else [40, 80, 200])
            X[picture][reach <= side / 2] = colour + random.integers(-40, 41, 3)
            labels.append("square" if square else "disc")
            corners = np.vstack([corners, box])
        y[picture] = Boxes(np.array(labels), corners)
    return X, y


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


def topics(n: int = 400, seed: int = 0) -> tuple[list[str], None]:
    """Sentences of eight words, three quarters from one of four topics, the rest from any.

    Words of one topic begin with the same letter. Two neighbours are from one topic in about two
    of three cases; a model that puts topics apart prefers them to words drawn at random in about
    three of four.

    >>> topics()[0][0]
    'd7 d0 d5 d5 d2 d0 c2 d3'
    """
    random = np.random.default_rng(seed)
    texts = []
    for topic in random.integers(4, size=n):
        own = random.random(8) < 0.75
        drawn = np.where(own, topic, random.integers(4, size=8))
        words = random.integers(8, size=8)
        texts.append(" ".join(f"{'abcd'[t]}{w}" for t, w in zip(drawn, words, strict=True)))
    return texts, None


def reviews(n: int = 300, seed: int = 0) -> tuple[list[str], np.ndarray]:
    """Short documents of two to four sentences, one of which says whether it is praise (1) or not.

    A word of that sentence tells, and in three cases of ten ``not`` turns it round: weights of
    single words are not enough.

    >>> texts, y = reviews()
    >>> texts[0], int(y[0])
    ('it was a poor film . my friend was there .', 0)
    """
    random = np.random.default_rng(seed)
    y = np.arange(n) % 2
    words = {1: ["good", "fine", "great"], 0: ["bad", "poor", "dull"]}
    others = ["i saw it here .", "it is short .", "my friend was there .", "it is long ."]
    texts = []
    for label in y:
        turned = random.random() < 0.3
        word = random.choice(words[int(label) ^ turned])
        rest = random.permutation(others)[: random.integers(1, 4)].tolist()
        verdict = f"it was {'not ' if turned else ''}a {word} film ."
        rest.insert(int(random.integers(len(rest) + 1)), verdict)
        texts.append(" ".join(rest))
    return texts, y


def reversal(n: int = 400, length: int = 5, seed: int = 0) -> Data:
    """Texts of four words or more out of eight, and the same texts backwards.

    >>> X, y = reversal()
    >>> X[0], y[0]
    ('f e c c a', 'a c c e f')
    """
    random = np.random.default_rng(seed)
    X, y = np.empty(n, dtype=object), np.empty(n, dtype=object)
    for i in range(n):
        words = ["abcdefgh"[k] for k in random.integers(8, size=random.integers(4, length + 1))]
        X[i], y[i] = " ".join(words), " ".join(reversed(words))
    return X, y


def opinions(n: int = 240, seed: int = 0) -> Data:
    """Texts of ten words out of thirty, and whether more of them are praise than blame.

    >>> X, y = opinions()
    >>> len(X[0].split()), sorted(set(y.tolist()))
    (10, [0, 1])
    """
    random = np.random.default_rng(seed)
    words = np.array([f"{kind}{k}" for kind in ("plain", "good", "bad") for k in range(10)])
    X, y = np.empty(n, dtype=object), np.arange(n) % 2
    for i in range(n):
        kinds = np.array([0] * 7 + [2 - y[i]] * 2 + [random.integers(3)])
        X[i] = " ".join(words[10 * random.permutation(kinds) + random.integers(10, size=10)])
    return X, y


def tagged(n: int = 120, seed: int = 0) -> Data:
    """Sentences of three to six words, and for each word its kind, which its ending tells.

    >>> X, y = tagged()
    >>> X[0][:3], y[0][:3]
    (('kiro', 'kiro', 'toa'), ('O', 'O', 'A'))
    """
    random = np.random.default_rng(seed)
    starts, endings = ("ki", "lu", "nam", "to"), {"a": "A", "ro": "O", "m": "M"}
    X, y = np.empty(n, dtype=object), np.empty(n, dtype=object)
    for i in range(n):
        ends = random.choice(list(endings), size=random.integers(3, 7))
        X[i] = tuple(f"{random.choice(starts)}{end}" for end in ends)
        y[i] = tuple(endings[end] for end in ends)
    return X, y


def questions(n: int = 240, seed: int = 0) -> Data:
    """Questions who, where and when to a text that says who is where, but not when.

    >>> X, y = questions()
    >>> X[:2].tolist(), y[:3].tolist()
    ([['who', 'Dee is in Pisa'], ['where', 'Cid is in Rome']], ['Dee', 'Rome', ''])
    """
    random = np.random.default_rng(seed)
    X, y = np.empty((n, 2), dtype=object), np.empty(n, dtype=object)
    for i in range(n):
        who = str(random.choice(["Ann", "Bob", "Cid", "Dee"]))
        where = str(random.choice(["Rome", "Pisa", "Bari"]))
        asked = ("who", "where", "when")[i % 3]
        X[i] = asked, f"{who} is in {where}"
        y[i] = {"who": who, "where": where, "when": ""}[asked]
    return X, y


TOYS: dict[str, Callable[[], Any]] = {
    "moons": moons,
    "blobs": blobs,
    "sine": sine,
    "plane": plane,
    "counts": counts,
    "echo": echo,
    "shapes": shapes,
    "stripes": stripes,
    "tones": tones,
    "scenes": scenes,
    "chain": chain,
    "textures": textures,
    "topics": topics,
    "reviews": reviews,
    "reversal": reversal,
    "opinions": opinions,
    "tagged": tagged,
    "questions": questions,
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
