"""Data of tutorials, all made up: ``x, y, x_val, y_val`` unless the function says otherwise."""

import math

import torch
from torch import Tensor

from evidence.corpus.programs._data import Four, halves, rng, scaled

SEGMENTS = ["1110111", "0010010", "1011101", "1011011", "0111010"]
SEGMENTS += ["1101011", "1101111", "1010010", "1111111", "1111011"]


def concrete(seed: int, n: int = 700, noise: float = 0.3) -> Four:
    """Eight columns of a mixture and its strength, (N, 1), as they are measured."""
    g = rng(seed)
    u = torch.rand(n, 8, generator=g)
    scale = torch.tensor([400.0, 200, 150, 180, 20, 900, 700, 300])
    s = 4 * u[:, 0] + 2 * torch.sin(5 * u[:, 1]) - 3 * u[:, 3] * u[:, 4] + 2 * u[:, 7].sqrt()
    s = 10 * s + 10 * noise * torch.randn(n, generator=g)
    return halves(u * scale, 20 + s[:, None], seed)


def tidy_concrete(seed: int, n: int = 700, noise: float = 0.3) -> Four:
    return scaled(concrete(seed, n, noise), targets=True)


def customers(seed: int, n: int = 900, rare: float = 0.3) -> tuple[Tensor, ...]:
    """City and product as numbers (N, 2), four standard columns (N, 4), bought (N,): twice."""
    g = rng(seed)
    ids = torch.stack([torch.randint(12, (n,), generator=g), torch.randint(6, (n,), generator=g)])
    x = torch.randn(n, 4, generator=g)
    like = torch.randn(12, generator=g)[ids[0]] + 1.5 * torch.randn(6, generator=g)[ids[1]]
    s = like + x[:, 0] * x[:, 1] + x[:, 2] + 0.5 * torch.randn(n, generator=g)
    y = (s > s.quantile(1 - rare)).float()
    cut = 3 * n // 4
    return ids.T[:cut], x[:cut], y[:cut], ids.T[cut:], x[cut:], y[cut:]


def bookings(seed: int, n: int = 800) -> Four:
    """Counts (N,) that follow Poisson's law of six columns."""
    g = rng(seed)
    x = torch.randn(n, 6, generator=g)
    rate = torch.exp(0.5 + 0.6 * x[:, 0] - 0.4 * x[:, 1].abs() + 0.4 * x[:, 2] * x[:, 3])
    return halves(x, torch.poisson(rate, generator=g), seed)


def stars(seed: int, n: int = 800, levels: int = 5) -> Four:
    """Six columns; a grade of 0 to 4 that grows with a hidden quality."""
    g = rng(seed)
    x = torch.randn(n, 6, generator=g)
    q = x[:, 0] + torch.sin(2 * x[:, 1]) + 0.7 * x[:, 2] * x[:, 3]
    q = q + 0.3 * torch.randn(n, generator=g)
    cuts = q.quantile(torch.arange(1, levels) / levels)
    return halves(x, torch.bucketize(q, cuts), seed)


def lifetimes(seed: int, n: int = 700) -> Four:
    """Five columns; time (standard exponential over the hazard) and whether it was seen to end."""
    g = rng(seed)
    x = torch.randn(n, 5, generator=g)
    hazard = torch.exp(0.8 * x[:, 0] - 0.6 * x[:, 1] + 0.5 * x[:, 2] ** 2 - 0.5)
    time = -torch.rand(n, generator=g).clamp_min(1e-6).log() / hazard
    end = 3 * torch.rand(n, generator=g)
    y = torch.stack([torch.minimum(time, end), (time <= end).float()], 1)
    return halves(x, y, seed)


def glyphs(seed: int, n: int = 900, noise: float = 0.25, classes: int = 10) -> Four:
    """Digits of seven segments somewhere on 12 by 12 pixels, (N, 1, 12, 12)."""
    g = rng(seed)
    y = torch.randint(classes, (n,), generator=g)
    at = torch.randint(0, 3, (n, 2), generator=g)
    x = torch.zeros(n, 1, 12, 12)
    for i in range(n):
        r, c = at[i].tolist()
        box = x[i, 0, r : r + 9, c + 1 : c + 7]
        bars = (box[0], box[:5, 0], box[:5, -1], box[4], box[4:, 0], box[4:, -1], box[8])
        for bar, digit in zip(bars, SEGMENTS[y[i]], strict=True):
            if digit == "1":
                bar.fill_(1.0)
    return halves(x + noise * torch.randn(x.shape, generator=g), y, seed)


def scenes(seed: int, n: int = 600) -> tuple[Tensor, ...]:
    """A disc, a square or a cross: images (N, 1, 16, 16), class (N,), box (N, 3) in [0, 1]."""
    g = rng(seed)
    kind = torch.randint(3, (n,), generator=g)
    r = 3 + 1.5 * torch.rand(n, 1, 1, generator=g)
    cx, cy = 5 + 6 * torch.rand(2, n, 1, 1, generator=g)
    row, col = torch.meshgrid(torch.arange(16.0), torch.arange(16.0), indexing="ij")
    dx, dy = (col - cx).abs(), (row - cy).abs()
    disc = dx**2 + dy**2 <= r**2
    square = (dx <= r) & (dy <= r) & ((dx > r - 1.2) | (dy > r - 1.2))
    cross = ((dx <= 0.8) & (dy <= r)) | ((dy <= 0.8) & (dx <= r))
    mask = torch.where(kind[:, None, None] == 0, disc, square)
    mask = torch.where(kind[:, None, None] == 2, cross, mask).float()[:, None]
    x = mask + 0.2 * torch.randn(mask.shape, generator=g)
    return x, kind, torch.cat([cx, cy, r], 1)[:, :, 0] / 16, mask


def activities(seed: int, n: int = 500, length: int = 32) -> Four:
    """Three channels of a sensor (N, 3, T): resting, walking, running or turning."""
    g = rng(seed)
    y = torch.randint(4, (n,), generator=g)
    t = torch.arange(length) / length
    pace = torch.tensor([0.0, 3.0, 6.0, 1.0])[y][:, None]
    phase = 6.28 * torch.rand(n, 1, generator=g)
    wave = torch.sin(6.28 * pace * t + phase)
    x = torch.stack([wave, 0.5 * torch.cos(6.28 * pace * t + phase), wave.abs()], 1)
    return halves(x + 0.5 * torch.randn(x.shape, generator=g), y, seed)


def verses(seed: int, n: int = 700) -> tuple[Tensor, int]:
    """A long row of letters of made-up verses, and the size of the alphabet."""
    g = rng(seed)
    first = ["roses are ", "violets are ", "the night is ", "my love is "]
    second = ["red, ", "blue, ", "long, ", "gone, "]
    third = ["and so am i. ", "so are you. ", "the day is done. ", "sing on. "]
    pick = torch.randint(4, (n, 3), generator=g)
    text = "".join(first[a] + second[b] + third[c] for a, b, c in pick.tolist())
    letters = sorted(set(text))
    return torch.tensor([letters.index(c) for c in text]), len(letters)


def reversals(seed: int, n: int = 800, length: int = 5, digits: int = 8) -> Four:
    """Digits (N, T) of 1 and up and the same backwards; 0 is kept for the start sign."""
    x = torch.randint(1, digits + 1, (n, length), generator=rng(seed))
    return halves(x, x.flip(1), seed)


def ratings(seed: int, users: int = 60, films: int = 40, n: int = 1600) -> Four:
    """Pairs of user and film (N, 2) and a rating that comes of three tastes."""
    g = rng(seed)
    u, v = torch.randn(users, 3, generator=g), torch.randn(films, 3, generator=g)
    pairs = torch.stack(
        [torch.randint(users, (n,), generator=g), torch.randint(films, (n,), generator=g)], 1
    )
    y = (u[pairs[:, 0]] * v[pairs[:, 1]]).sum(1) + 0.3 * torch.randn(n, generator=g)
    return halves(pairs, y, seed)


def two_branches(seed: int, n: int = 700) -> Four:
    """One column; the answer (N, 1) is one of two curves, by chance."""
    g = rng(seed)
    x = 2 * torch.rand(n, 1, generator=g) - 1
    up = torch.rand(n, 1, generator=g) < 0.5
    y = torch.where(up, x**2 + 0.5, -x - 0.7) + 0.05 * torch.randn(n, 1, generator=g)
    return halves(x, y, seed)


def clubs(seed: int, n: int = 160, groups: int = 4) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Members' columns (N, 12), the adjacency matrix scaled by rows, their club, who is known."""
    g = rng(seed)
    y = torch.randint(groups, (n,), generator=g)
    same = y[:, None] == y[None]
    a = (torch.rand(n, n, generator=g) < torch.where(same, 0.12, 0.01)).float()
    a = ((a + a.T) > 0).float().fill_diagonal_(1)
    x = torch.randn(n, 12, generator=g)
    x[:, :groups] += 1.0 * torch.eye(groups)[y]
    return x, a / a.sum(1, keepdim=True), y, torch.rand(n, generator=g) < 0.5


def messages(seed: int, n: int = 700, length: int = 14, words: int = 60) -> Four:
    """Words (N, T) of four topics; every topic has its own words beside the common ones."""
    g = rng(seed)
    y = torch.randint(4, (n,), generator=g)
    own = 20 + 10 * y[:, None] + torch.randint(10, (n, length), generator=g)
    common = torch.randint(words, (n, length), generator=g)
    x = torch.where(torch.rand(n, length, generator=g) < 0.35, own, common)
    return halves(x, y, seed)


def rings(seed: int, n: int = 600, noise: float = 0.12) -> Four:
    """Two rings, one within the other."""
    g = rng(seed)
    y = torch.randint(2, (n,), generator=g)
    t = 2 * math.pi * torch.rand(n, generator=g)
    r = 0.6 + 0.8 * y + noise * torch.randn(n, generator=g)
    return halves(torch.stack([r * t.cos(), r * t.sin()], 1), y, seed)


def wiggle(seed: int, n: int = 400, noise: float = 0.1) -> Four:
    """A curve of one column, (N, 1) both."""
    g = rng(seed)
    x = 4 * torch.rand(n, 1, generator=g) - 2
    return halves(x, torch.sin(3 * x) + 0.3 * x + noise * torch.randn(n, 1, generator=g), seed)


def tags(seed: int, n: int = 700, labels: int = 6) -> Four:
    """Sixteen columns and six labels of which several may hold, y float (N, 6)."""
    g = rng(seed)
    x = torch.randn(n, 16, generator=g)
    z = x @ torch.randn(16, labels, generator=g) / 4 + 0.5 * x[:, :labels] * x[:, -labels:]
    return halves(x, (z > 0.3).float(), seed)
