"""Toy problems and contract checks, for our tests and those of other people's estimators."""

from castalia.testing import contract, toys
from castalia.testing.tensor_loop import train_tensors
from castalia.testing.toys import TOYS, toy

__all__ = ["TOYS", "contract", "toy", "toys", "train_tensors"]
