"""What happens to agents, as rows that the training loop takes its batches from.

The loop walks through rows; here a callback writes new ones at the beginning of an epoch, by
letting the network of that moment act in copies of a world.  Shapes: C copies, D numbers of a
state, A actions.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from castalia.errors import InvalidData, InvalidParameter
from castalia.models.control.environments import Environment
from castalia.protocols import Rows
from castalia.utils.imports import require
from castalia.utils.seeds import derive
from castalia.utils.text import shorten

__all__ = ["Crew", "Experience", "as_numbers", "begun", "opened", "shown", "state_width", "stepped"]

Step = tuple[Any, float, bool, bool, dict[str, Any]]


def stepped(owner: str, world: Any, action: int) -> Step:
    """Act once; what the world raises is said with its name and the action."""
    try:
        found = world.step(action)
    except Exception as error:
        raise _raised(owner, world, f"step({action})", error) from error
    if len(found) != 5 or not math.isfinite(found[1]):
        raise InvalidData(
            f"{owner}: the world must return a state, a finite reward, whether the episode ended "
            f"or was cut, and a dict; `{type(world).__name__}.step({action})` returned "
            f"{shorten(repr(found), 80)}."
        )
    state, reward, ended, cut, more = found
    return state, reward, ended, cut, more


def begun(owner: str, world: Any, seed: int | None = None) -> Any:
    """Begin an episode and return its first state; what the world raises is said."""
    try:
        return world.reset(seed=seed)[0]
    except Exception as error:
        raise _raised(owner, world, "reset()", error) from error


def shown(owner: str, world: Any) -> Any:
    """Return what a world shows of itself, None where it shows nothing."""
    try:
        return world.render() if hasattr(world, "render") else None
    except Exception as error:
        raise _raised(owner, world, "render()", error) from error


def _raised(owner: str, world: Any, call: str, error: Exception) -> InvalidData:
    return InvalidData(
        f"{owner}: the world must begin, show itself and answer every action it has; "
        f"`{type(world).__name__}.{call}` raised {type(error).__name__}: {error}."
    )


def opened(owner: str, world: Any, **settings: Any) -> Environment:
    """Return a world with numbered actions, made by Gymnasium where it is given by its name."""
    if isinstance(world, str):
        gymnasium = require("gymnasium", caller=owner, extra="control")
        try:
            world = gymnasium.make(world, **settings)
        except gymnasium.error.Error as error:
            raise InvalidParameter(
                f"{owner}: the world must be one that Gymnasium knows; got {world!r}: "
                f"{shorten(' '.join(str(error).split()), 160)}"
            ) from error
    spaces = [getattr(world, f"{kind}_space", None) for kind in ("observation", "action")]
    seen = hasattr(spaces[0], "n") or getattr(spaces[0], "shape", None)
    acts = hasattr(spaces[1], "n") and hasattr(world, "reset") and hasattr(world, "step")
    if not (seen and acts):
        raise InvalidParameter(
            f"{owner}: the world must have `reset`, `step`, an `observation_space` with `n` or "
            f"`shape` and a counted `action_space` (`n`); got {type(world).__name__}."
        )
    return world


def state_width(world: Environment) -> int:
    """Return how many numbers a state is for a network."""
    space = world.observation_space
    return int(space.n) if hasattr(space, "n") else int(np.prod(space.shape))


def as_numbers(states: Any, width: int) -> Tensor:
    """Return states as rows of numbers, (B, D); a counted one is a 1 among zeros.

    >>> as_numbers([2, 0], 3)
    tensor([[0., 0., 1.],
            [1., 0., 0.]])
    """
    found = np.asarray(states)
    if found.ndim == 1 and found.dtype.kind in "iu":
        return torch.from_numpy(np.eye(width, dtype=np.float32)[found])
    rows = found.astype(np.float32).reshape(len(found), -1)
    if rows.shape[1] != width:
        raise InvalidParameter(
            f"states must have {width} numbers, as those of the world in fit; got {rows.shape[1]}."
        )
    if not np.isfinite(rows).all():
        raise InvalidData("states must be finite numbers; got NaN or infinity.")
    return torch.from_numpy(rows)


class Crew:
    """Copies of a world that are played side by side and begin again when they end.

    Parameters
    ----------
    world
        The world; it is copied, and stays as it is.
    copies
        C.
    random_state
        Seed of their first states and their chance.
    owner
        Who plays, for messages.

    Attributes
    ----------
    states : list
        Where each copy is.
    returns : list of float
        Sum of rewards of each episode that ended.
    """

    def __init__(
        self, world: Environment, copies: int, random_state: int, owner: str = "Agent"
    ) -> None:
        self.owner = owner
        self.worlds = [copy.deepcopy(world) for _ in range(copies)]
        self.states = [
            begun(owner, w, derive(random_state, i) % 2**31) for i, w in enumerate(self.worlds)
        ]
        self.returns: list[float] = []
        self.counts: list[int] = []
        self._totals, self._steps = np.zeros(copies), 0

    def step(self, actions: Any) -> tuple[list[Any], np.ndarray, np.ndarray, np.ndarray]:
        """Act once in every copy; return states, rewards, whether they ended and were cut."""
        after, rewards, ended, cut = [], [], [], []
        for i, (world, action) in enumerate(zip(self.worlds, actions, strict=True)):
            seen, reward, *ends, _ = stepped(self.owner, world, int(action))
            after.append(seen)
            rewards.append(float(reward))
            ended.append(bool(ends[0]))
            cut.append(bool(ends[1]))
            self._steps += 1
            self._totals[i] += rewards[-1]
            if any(ends):
                self.returns.append(float(self._totals[i]))
                self.counts.append(self._steps)
                self._totals[i] = 0
            self.states[i] = begun(self.owner, world) if any(ends) else seen
        return after, np.array(rewards), np.array(ended), np.array(cut)


class Experience(Rows):
    """Rows that are replaced while a training runs: a batch is a dict of tensors.

    Parameters
    ----------
    n
        How many there are at any time.
    width
        D.
    world
        Where they come from, which says whether a recorded training is the same one.
    """

    dtype = torch.float32

    def __init__(self, n: int, width: int, world: Any) -> None:
        self.n, self.shape, self.world = n, (width,), world
        self.parts: dict[str, Tensor] = {}

    def __len__(self) -> int:
        return self.n

    def take(self, index: Tensor, width: int | None = None) -> dict[str, Tensor]:
        """Return the rows at these positions."""
        return {name: part[index] for name, part in self.parts.items()}

    def fingerprint(self) -> str:
        """Return the kind of the world and its size."""
        return f"{type(self.world).__name__} {self.n} {self.shape}"
