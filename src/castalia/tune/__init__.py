"""Searches over settings that survive a killed process."""

from castalia.tune.effects import EFFECTS, Effect
from castalia.tune.search import BayesianSearch, GridSearch, RandomSearch
from castalia.tune.space import Choice, Uniform, Whole, default_space, grid_of

__all__ = [
    "EFFECTS",
    "BayesianSearch",
    "Choice",
    "Effect",
    "GridSearch",
    "RandomSearch",
    "Uniform",
    "Whole",
    "default_space",
    "grid_of",
]
