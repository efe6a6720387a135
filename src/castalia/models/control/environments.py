"""Small worlds to learn in: a grid, a walk, and a game.

Worlds have the API of Gymnasium: ``reset(seed=…)`` gives a state, ``step(action)`` the next state,
a reward and whether the episode ended. Their transition law is open, so that what is learnt can be
compared with what is optimal.  Shapes: S states, A actions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from castalia.errors import InvalidParameter

__all__ = ["Box", "Count", "Environment", "GridWorld", "RandomWalk", "World", "value_iteration"]


class Environment(Protocol):
    """What agents act in: the API of Gymnasium's environments, which need not be installed."""

    observation_space: Any  # has ``n``, or ``shape``
    action_space: Any  # has ``n``

    def reset(self, *, seed: int | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; return its first state."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Do something; return state, reward, whether it ended, whether it was cut, and more."""


@dataclass(frozen=True)
class Count:
    """A space of ``n`` numbered states or actions."""

    n: int


@dataclass(frozen=True)
class Box:
    """A space of arrays."""

    shape: tuple[int, ...]


class World:
    """A Markov decision process with a table of transitions.

    Parameters
    ----------
    chances
        P(s' | s, a), (S, A, S).
    rewards
        Reward of arriving: r(s, a, s'), (S, A, S).
    final
        Whether a state ends the episode, (S,).
    start
        Where episodes begin.

    Examples
    --------
    >>> walk = RandomWalk(5)
    >>> walk.reset(seed=0)[0]
    3
    """

    def __init__(
        self, chances: np.ndarray, rewards: np.ndarray, final: np.ndarray, start: int
    ) -> None:
        self.chances, self.rewards, self.final, self.start = chances, rewards, final, start
        self.observation_space, self.action_space = Count(len(chances)), Count(chances.shape[1])
        self.state, self._random = start, np.random.default_rng()

    def reset(self, *, seed: int | None = None) -> tuple[int, dict[str, Any]]:
        """Begin an episode; with a seed also the world's own chance."""
        if seed is not None:
            self._random = np.random.default_rng(seed)
        self.state = self.start
        return self.state, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Do something; return state, reward, whether it ended, False and nothing else."""
        law = self.chances[self.state, action]
        before, self.state = self.state, int(self._random.choice(len(law), p=law))
        reward = float(self.rewards[before, action, self.state])
        return self.state, reward, bool(self.final[self.state]), False, {}


class RandomWalk(World):
    """States 1 to n in a row; each step goes left or right by chance. The right end pays 1.

    The value of state i without discount is i / (n + 1).
    """

    def __init__(self, n: int = 5) -> None:
        if n < 1:
            raise InvalidParameter(f"RandomWalk: `n` must be at least 1; got {n}.")
        chances, final = np.zeros((n + 2, 1, n + 2)), np.zeros(n + 2, dtype=bool)
        final[[0, -1]] = True
        for i in range(1, n + 1):
            chances[i, 0, [i - 1, i + 1]] = 0.5
        chances[0, 0, 0] = chances[-1, 0, -1] = 1
        rewards = np.zeros_like(chances)
        rewards[n, 0, n + 1] = 1
        super().__init__(chances, rewards, final, (n + 1) // 2)


class GridWorld(World):
    """A map of letters: ``S`` start, ``G`` goal (+1), ``H`` hole (-1), ``#`` wall.

    Actions are up, right, down and left; a step costs ``cost``, and with chance ``slip`` it goes to
    one of the two sides instead.

    Examples
    --------
    >>> world = GridWorld(["S.", "HG"])
    >>> world.step(1)[0], world.step(2)[:3]
    (1, (3, 0.99, True))
    """

    def __init__(self, rows: list[str], *, slip: float = 0.0, cost: float = 0.01) -> None:
        self.rows = rows
        cells = "".join(rows)
        if len({len(row) for row in rows}) != 1 or cells.count("S") != 1 or "G" not in cells:
            raise InvalidParameter(
                f"GridWorld: `rows` must be lines of one length with one S and a G; got {rows}."
            )
        width, n = len(rows[0]), len(cells)
        chances, rewards = np.zeros((n, 4, n)), np.full((n, 4, n), -cost)
        final = np.array([cell in "GH" for cell in cells])
        for cell, extra in (("G", 1.0), ("H", -1.0)):
            rewards[:, :, [c == cell for c in cells]] += extra
        for s in range(n):
            for a in range(4):
                for turn, chance in ((0, 1 - slip), (1, slip / 2), (3, slip / 2)):
                    chances[s, a, self._next(cells, width, s, (a + turn) % 4)] += chance
        super().__init__(chances, rewards, final, cells.index("S"))

    def render(self) -> np.ndarray:
        """Return the map and where one is as an image of bytes, 24 pixels a cell."""
        tints = {"#": (90, 94, 100), "G": (120, 180, 120), "H": (200, 110, 100)}
        cells = "".join(self.rows)
        colours = np.array([tints.get(cell, (245, 245, 245)) for cell in cells], dtype=np.uint8)
        image = colours.reshape(len(self.rows), -1, 3).repeat(24, axis=0).repeat(24, axis=1)
        image[::24], image[:, ::24] = 220, 220
        row, column = (24 * part for part in divmod(self.state, len(self.rows[0])))
        image[row + 7 : row + 18, column + 7 : column + 18] = (68, 105, 164)
        return image

    @staticmethod
    def _next(cells: str, width: int, s: int, direction: int) -> int:
        """Return where a step leads; walls and the border leave one where one is."""
        down, right = ((-1, 0), (0, 1), (1, 0), (0, -1))[direction]
        row, column = s // width + down, s % width + right
        if not (0 <= column < width and 0 <= row < len(cells) // width):
            return s
        there = row * width + column
        return s if cells[there] == "#" else there


def value_iteration(world: World, discount: float = 0.99, tolerance: float = 1e-10) -> np.ndarray:
    """Return the best return from each state after each action, (S, A), by Bellman's equation.

    Q(s, a) = sum_s' P(s' | s, a) (r(s, a, s') + discount max_a' Q(s', a')).
    """
    q = np.zeros(world.chances.shape[:2])
    while True:
        ahead = np.where(world.final, 0.0, q.max(axis=1))
        new = (world.chances * (world.rewards + discount * ahead)).sum(axis=2)
        new[world.final] = 0
        if np.abs(new - q).max() < tolerance:
            return new
        q = new
