"""A pole on a cart: pushed left or right, it is to stay upright.

t = (F + m l w^2 sin a) / M,  w' = (g sin a - cos a t) / (l (4/3 - m cos^2 a / M)),
v' = t - m l w' cos a / M, with M the mass of both, m and l the pole's mass and half its length, a
its angle and w how fast that grows; steps of 0.02 s by Euler's method.
Reference: 1983, Barto, Sutton, Anderson, Neuronlike adaptive elements that can solve difficult
learning control problems, IEEE SMC 13.
"""

from __future__ import annotations

from math import cos, sin
from typing import Any

import numpy as np

from castalia.models.control.environments import Box, Count

__all__ = ["CartPole"]

GRAVITY, POLE, TOTAL, HALF, PUSH, SECONDS = 9.8, 0.1, 1.1, 0.5, 10.0, 0.02
EDGE, TILT, START = 2.4, 0.20944, 0.05  # metres; 12 degrees; how far a first state may be from 0


class CartPole:
    """State (x, v, a, w); each step pays 1; it ends at the edge or when the pole is tilted.

    The numbers are those of Gymnasium's ``CartPole-v1``, so that agents can be compared.

    Parameters
    ----------
    steps
        Steps after which an episode is cut.

    Examples
    --------
    >>> world = CartPole()
    >>> world.reset(seed=0)[0].shape, world.step(1)[1]
    ((4,), 1.0)
    """

    def __init__(self, steps: int = 500) -> None:
        self.steps = steps
        self.observation_space, self.action_space = Box((4,)), Count(2)
        self._random, self._state, self._done = np.random.default_rng(), (0.0,) * 4, 0

    def reset(self, *, seed: int | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode near the upright position."""
        if seed is not None:
            self._random = np.random.default_rng(seed)
        self._state, self._done = tuple(self._random.uniform(-START, START, 4).tolist()), 0
        return np.array(self._state, dtype=np.float32), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Push left (0) or right (1)."""
        x, v, a, w = self._state
        force = PUSH if action == 1 else -PUSH
        t = (force + POLE * HALF * w * w * sin(a)) / TOTAL
        turn = (GRAVITY * sin(a) - cos(a) * t) / (HALF * (4 / 3 - POLE * cos(a) ** 2 / TOTAL))
        gain = t - POLE * HALF * turn * cos(a) / TOTAL
        x, v, a, w = (x + SECONDS * v, v + SECONDS * gain, a + SECONDS * w, w + SECONDS * turn)
        self._state, self._done = (x, v, a, w), self._done + 1
        ended = abs(x) > EDGE or abs(a) > TILT
        seen = np.array(self._state, dtype=np.float32)
        return seen, 1.0, ended, not ended and self._done >= self.steps, {}

    def render(self) -> np.ndarray:
        """Return cart and pole as an image of bytes, (120, 240, 3)."""
        image = np.full((120, 240, 3), 255, dtype=np.uint8)
        x, _, a, _ = self._state
        middle = 120 + x / EDGE * 100
        image[100:102] = 200  # the track
        image[88:100, max(0, round(middle) - 18) : max(0, round(middle) + 18)] = (68, 105, 164)
        for along in np.linspace(0, 70, 141):
            row, column = round(88 - along * cos(a)), round(middle + along * sin(a))
            image[row - 1 : row + 2, max(0, column - 1) : max(0, column + 2)] = (204, 121, 65)
        return image
