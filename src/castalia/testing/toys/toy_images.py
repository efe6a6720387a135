"""Toy images and signals."""

from __future__ import annotations

import numpy as np

from castalia.data.images import Boxes

__all__ = ["captions", "paint_pairs", "scenes", "shapes", "stripes", "textures", "tones"]

Data = tuple[np.ndarray, np.ndarray]


def shapes(n: int = 64, size: int = 24, noise: float = 20, seed: int = 0) -> Data:
    """Noisy grey images with a square and a disc each, and their masks: 0 ground, 1, 2.

    The square is darker than the ground and the disc, which lies above it, brighter, each by three
    deviations of the noise: the neighbourhood of a pixel says more than the pixel.

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
    """Grey images of waves that run across, down or aslant, of any phase and in noise.

    No pixel gives the class away; a 3 x 3 filter nearly does.

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
    """Colour images of waves of one colour on another; y is steep or flat.

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
    """Colour images of one to three squares and discs in noise; y holds their ``Boxes``.

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
    for image in range(n):
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
            X[image][reach <= side / 2] = colour + random.integers(-40, 41, 3)
            labels.append("square" if square else "disc")
            corners = np.vstack([corners, box])
        y[image] = Boxes(np.array(labels), corners)
    return X, y


def captions(n: int = 600, size: int = 16, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Images of two things beside or above each other, and sentences that say so.

    >>> X, y = captions()
    >>> X.shape, X.dtype, y[0]
    ((600, 16, 16, 3), dtype('uint8'), 'a red square above a green cross')
    """
    X, y, _ = paint_pairs(n, size, seed)
    return X, y


def paint_pairs(n: int, size: int = 16, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Paint the images of ``captions``; also say where things are, (N, 2, H, W) of truths.

    A thing is red, green or blue, a square or a cross, and fills most of a quarter of the image;
    the one that is named first is to the left of the other, or above it.
    """
    random = np.random.default_rng(seed)
    colours = {"red": (220, 40, 40), "green": (40, 190, 40), "blue": (50, 60, 220)}
    X = random.integers(0, 50, (n, size, size, 3)).astype(np.uint8)
    y, where = np.empty(n, dtype=object), np.zeros((n, 2, size, size), dtype=bool)
    half, down_across = size // 2, np.mgrid[:size, :size]
    for image in range(n):
        above = int(random.integers(2))
        words = []
        for i in range(2):
            corner = np.array([i, 0.5] if above else [0.5, i]) * half
            middle = corner + half / 2 - 0.5 + random.integers(-1, 2, 2) / 2
            far = np.abs(down_across - middle[:, None, None])
            name, square = random.choice(list(colours)), random.random() < 0.5
            inside = far.max(axis=0) <= half / 2 - 1
            where[image, i] = inside if square else inside & (far.min(axis=0) <= half / 8)
            X[image][where[image, i]] = colours[name]
            words.append(f"a {name} {'square' if square else 'cross'}")
        y[image] = f"{words[0]} {'above' if above else 'left of'} {words[1]}"
    return X, y, where
