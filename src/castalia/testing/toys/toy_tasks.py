"""Families of functions, and small worlds."""

from __future__ import annotations

import numpy as np

from castalia.models.control import GridWorld, RandomWalk

__all__ = ["grid", "steps", "waves"]


def waves(tasks: int = 40, points: int = 16, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return points of sines of other heights and shifts, side by side: (T, n, 1) and (T, n).

    >>> waves(3)[0].shape
    (3, 16, 1)
    """
    random = np.random.default_rng(seed)
    x = random.uniform(-2, 2, (tasks, points))
    high, shift = random.uniform(0.5, 2, (tasks, 1)), random.uniform(0, np.pi, (tasks, 1))
    return x[:, :, None], high * np.sin(x + shift)


def grid() -> tuple[GridWorld, None]:
    """Return a map with a hole beside the way to the goal; the best return is 0.97."""
    return GridWorld(["S..", ".HG"]), None


def steps() -> tuple[RandomWalk, None]:
    """Return a walk of five states, whose values are known."""
    return RandomWalk(5), None
