"""Searches over settings that survive a killed process."""

import warnings
from collections.abc import Callable, Mapping
from typing import Any

from castalia.tune.effects import EFFECTS, Effect
from castalia.tune.search import BayesianSearch, GridSearch, RandomSearch
from castalia.tune.search_space import SearchSpace
from castalia.tune.space import Choice, Uniform, Whole

__all__ = [
    "EFFECTS",
    "BayesianSearch",
    "Choice",
    "Effect",
    "GridSearch",
    "RandomSearch",
    "SearchSpace",
    "Uniform",
    "Whole",
]


def _grid_of(space: Mapping[str, Any], most: int, points: int = 4) -> SearchSpace:
    return SearchSpace(space).grid(most, points)


_RENAMED: dict[str, tuple[str, Callable[..., SearchSpace]]] = {
    "default_space": ("SearchSpace.default", SearchSpace.default),
    "grid_of": ("SearchSpace.grid", _grid_of),
}


def __getattr__(name: str) -> Any:
    if name not in _RENAMED:
        raise AttributeError(f"module 'castalia.tune' has no attribute {name!r}")
    now, found = _RENAMED[name]
    warnings.warn(
        f"castalia.tune.{name} is now {now}; the old name goes with the next version.",
        FutureWarning,
        stacklevel=2,
    )
    return found
