"""Searches over settings that survive a killed process."""

from castalia.tune.search import BayesianSearch, GridSearch, RandomSearch
from castalia.tune.space import Choice, Uniform, Whole, default_space

__all__ = [
    "BayesianSearch",
    "Choice",
    "GridSearch",
    "RandomSearch",
    "Uniform",
    "Whole",
    "default_space",
]
