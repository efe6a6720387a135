"""Small data for the regimes: digits, a surface, a graph and a table of ratings."""

from __future__ import annotations

import functools
import math

import torch
from sklearn.datasets import load_digits
from torch import Tensor

Split = tuple[Tensor, Tensor, Tensor, Tensor]


@functools.cache
def _digits() -> tuple[Tensor, Tensor]:
    x, y = load_digits(return_X_y=True)
    return torch.tensor(x, dtype=torch.float32) / 8 - 1, torch.tensor(y)


def digits(seed: int, rows: int = 1400) -> Split:
    """Digits between -1 and 1, flat: rows to train on and 397 to validate on."""
    x, y = _digits()
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))
    train, held = order[:rows], order[1400:]
    return x[train], y[train], x[held], y[held]


def surface(seed: int, rows: int = 800) -> Split:
    """A wavy surface over three columns, with a little noise."""
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(rows + 300, 3, generator=g)
    y = torch.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.05 * torch.randn(len(x), generator=g)
    y = ((y - y.mean()) / y.std()).unsqueeze(1)
    return x[:rows], y[:rows], x[rows:], y[rows:]


def graph(seed: int, nodes: int = 600, classes: int = 4) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """A graph of communities: features, normalised adjacency, labels, nodes to train on."""
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, classes, (nodes,), generator=g)
    near = (y[:, None] == y[None, :]).float() * 0.03 + 0.004
    a = torch.triu((torch.rand(nodes, nodes, generator=g) < near).float(), 1)
    a = a + a.T + torch.eye(nodes)
    d = a.sum(1).rsqrt()
    x = torch.zeros(nodes, 80)
    words = torch.rand(nodes, 80, generator=g)
    x[words < 0.06] = 1.0
    own = (torch.arange(80) % classes)[None, :] == y[:, None]
    x[own & (words < 0.11)] = 1.0
    x = x / x.sum(1, keepdim=True).clamp(min=1)
    train = torch.zeros(nodes, dtype=torch.bool)
    train[torch.randperm(nodes, generator=g)[:120]] = True
    return x, d[:, None] * a * d[None, :], y, train


def ratings(seed: int, users: int = 120, films: int = 90, rank: int = 4) -> Split:
    """Ratings of films by users, of low rank, with noise; pairs of numbers and a score."""
    g = torch.Generator().manual_seed(seed)
    u, v = torch.randn(users, rank, generator=g), torch.randn(films, rank, generator=g)
    pairs = torch.cartesian_prod(torch.arange(users), torch.arange(films))
    pairs = pairs[torch.randperm(len(pairs), generator=g)[:6000]]
    score = (u[pairs[:, 0]] * v[pairs[:, 1]]).sum(1) / math.sqrt(rank)
    score = score + 0.2 * torch.randn(len(score), generator=g)
    return pairs[:5000], score[:5000], pairs[5000:], score[5000:]
