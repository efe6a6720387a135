"""Two tasks of control behind the interface of ``gymnasium``."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np


def install(module: Callable[..., Any], old: bool = False) -> None:
    """Make the modules ``gym`` and ``gymnasium``, with the old interface or with that of today."""
    for name in ("gym", "gymnasium"):
        made = module(name, make=make_old if old else make, Env=Task)
        made.spaces = module(f"{name}.spaces", Discrete=Discrete, Box=Box)
        module(f"{name}.wrappers", RecordEpisodeStatistics=Counted)
        module(f"{name}.vector", SyncVectorEnv=Several)


class Discrete:
    """Actions 0 … n − 1."""

    def __init__(self, n: int) -> None:
        self.n, self.shape, self.dtype = n, (), np.int64
        self.rng = np.random.default_rng(0)

    def sample(self) -> int:
        """Return one of them."""
        return int(self.rng.integers(self.n))

    def seed(self, seed: int) -> None:
        """Begin other random numbers."""
        self.rng = np.random.default_rng(seed)


class Box:
    """Vectors between two ends."""

    def __init__(self, low: float, high: float, shape: tuple[int, ...]) -> None:
        self.low, self.high = np.full(shape, low, np.float32), np.full(shape, high, np.float32)
        self.shape, self.dtype, self.rng = shape, np.float32, np.random.default_rng(0)

    def sample(self) -> np.ndarray:
        """Return one of them."""
        return self.rng.uniform(self.low, self.high).astype(np.float32)

    def seed(self, seed: int) -> None:
        """Begin other random numbers."""
        self.rng = np.random.default_rng(seed)


class Task:
    """An episode of at most ``limit`` steps."""

    limit = 500
    action_space: Any
    observation_space: Any

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)
        self.state, self.steps = np.zeros(4), 0
        self.spec = SimpleNamespace(reward_threshold=475.0, max_episode_steps=self.limit)
        self.unwrapped = self

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        """Begin an episode."""
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        self.steps, self.state = 0, self.first()
        return self.seen(), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        """Act."""
        self.steps += 1
        reward, over = self.act(action)
        return self.seen(), reward, over, self.steps >= self.limit, {}

    def first(self) -> np.ndarray:
        """Return a state to begin with."""
        return self.rng.uniform(-0.05, 0.05, 4)

    def seen(self) -> np.ndarray:
        """Return what is seen of the state."""
        return self.state.astype(np.float32)

    def act(self, action: Any) -> tuple[float, bool]:
        """Move the state; return the reward and whether it is over."""
        raise NotImplementedError

    def close(self) -> None:
        """Nothing is open."""


class CartPole(Task):
    """A pole on a cart that is pushed to the left or the right (Barto, Sutton, Anderson 1983)."""

    action_space = Discrete(2)
    observation_space = Box(-math.inf, math.inf, (4,))

    def act(self, action: Any) -> tuple[float, bool]:
        """Push for a fiftieth of a second; fallen is beyond 12 degrees or 2.4 metres."""
        x, v, angle, turn = self.state
        push = 10.0 if int(action) == 1 else -10.0
        sine, cosine = math.sin(angle), math.cos(angle)
        force = (push + 0.05 * turn**2 * sine) / 1.1
        bend = (9.8 * sine - cosine * force) / (0.5 * (4 / 3 - 0.1 * cosine**2 / 1.1))
        pull = force - 0.05 * bend * cosine / 1.1
        self.state = np.array([x, v, angle, turn]) + 0.02 * np.array([v, pull, turn, bend])
        fallen = abs(self.state[0]) > 2.4 or abs(self.state[2]) > math.radians(12)
        return 1.0, bool(fallen)


class Pendulum(Task):
    """A pendulum to be swung up and held by turning its axis."""

    limit = 200
    action_space = Box(-2.0, 2.0, (1,))
    observation_space = Box(-8.0, 8.0, (3,))

    def first(self) -> np.ndarray:
        """Return any angle and a small turn."""
        return self.rng.uniform([-math.pi, -1.0], [math.pi, 1.0])

    def seen(self) -> np.ndarray:
        """Return where the tip is, and the turn."""
        angle, turn = self.state
        return np.array([math.cos(angle), math.sin(angle), turn], dtype=np.float32)

    def act(self, action: Any) -> tuple[float, bool]:
        """Turn for a twentieth of a second."""
        angle, turn = self.state
        push = float(np.clip(np.ravel(action)[0], -2, 2))
        upright = (angle + math.pi) % (2 * math.pi) - math.pi
        cost = upright**2 + 0.1 * turn**2 + 0.001 * push**2
        turn = float(np.clip(turn + 0.05 * (15 * math.sin(angle) + 3 * push), -8, 8))
        self.state = np.array([angle + 0.05 * turn, turn])
        return -cost, False


class Counted:
    """A task that says at the end of an episode what it gave."""

    def __init__(self, task: Any) -> None:
        self.task, self.total = task, 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.task, name)

    def reset(self, **options: Any) -> tuple[np.ndarray, dict]:
        """Begin an episode."""
        self.total = 0.0
        return self.task.reset(**options)

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        """Act."""
        seen, reward, over, cut, said = self.task.step(action)
        self.total += reward
        said = {"episode": {"r": self.total, "l": self.task.steps}} if over or cut else said
        return seen, reward, over, cut, said


class Several:
    """Tasks side by side, each begun anew when it ends."""

    def __init__(self, makers: list[Callable[[], Any]], **_: Any) -> None:
        self.tasks = [one() for one in makers]
        self.num_envs = len(self.tasks)
        self.single_action_space = self.tasks[0].action_space
        self.single_observation_space = self.tasks[0].observation_space

    def reset(self, *, seed: int | None = None, **_: Any) -> tuple[np.ndarray, dict]:
        """Begin an episode of each."""
        seeds = [None if seed is None else seed + i for i in range(self.num_envs)]
        begun = [one.reset(seed=s)[0] for one, s in zip(self.tasks, seeds, strict=True)]
        return np.stack(begun), {}

    def step(self, actions: Any) -> tuple[Any, ...]:
        """Act in each."""
        given = [one.step(action) for one, action in zip(self.tasks, actions, strict=True)]
        seen = [one[0] for one in given]
        reward, over, cut = (np.array([one[i] for one in given]) for i in (1, 2, 3))
        ended = over | cut
        if not ended.any():
            return np.stack(seen), reward, over, cut, {}
        said = {"final_info": [one[4] or None for one in given], "final_observation": seen}
        begun = [self.tasks[i].reset()[0] if ended[i] else seen[i] for i in range(self.num_envs)]
        return np.stack(begun), reward, over, cut, said

    def close(self) -> None:
        """Nothing is open."""


def make(name: str, **_: Any) -> Task:
    """Return a task by its name."""
    return CartPole() if name.startswith("CartPole") else Pendulum()


class Old:
    """A task as ``gym`` had it until 2022: no second value at the start, one end of two kinds."""

    reward_range = (-math.inf, math.inf)

    def __init__(self, task: Task, limit: int) -> None:
        self.task, self.task.limit, self._max_episode_steps = task, limit, limit
        self.unwrapped = self

    def __getattr__(self, name: str) -> Any:
        return getattr(self.task, name)

    def seed(self, seed: int) -> None:
        """Begin other random numbers."""
        self.task.rng = np.random.default_rng(seed)

    def reset(self) -> np.ndarray:
        """Begin an episode."""
        return self.task.reset()[0]

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, dict]:
        """Act."""
        seen, reward, over, cut, said = self.task.step(action)
        return seen, reward, over or cut, said


def make_old(name: str, **_: Any) -> Old:
    """Return a task by its name."""
    return Old(make(name), 500 if name == "CartPole-v1" else 200)
