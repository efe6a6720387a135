"""Saying that a linear system has no unique solution."""

from __future__ import annotations

import warnings
from typing import Any

from castalia.errors import DataWarning, InvalidData
from castalia.models.linear.solvers.least_squares_solver import Solution
from castalia.utils.text import number

__all__ = ["report_singular"]


def report_singular(owner: Any, found: Solution, shape: tuple[int, int], do: str) -> None:
    """Say that, and how far, the columns do not determine the weights."""
    n, d = shape
    rank = min(n - int(owner.fit_intercept), d) if found.rank is None else found.rank
    if rank >= d or do == "min_norm":
        return
    said = (
        f"{type(owner).__name__}: X must have full column rank for the weights to be unique; got "
        f"rank {rank} of {d} columns ({n:,} rows, condition number {number(found.condition)})."
    )
    if do == "raise":
        raise InvalidData(f"{said} Drop columns, add a penalty, or ask for singular='min_norm'.")
    warnings.warn(
        f"{said} These are the weights of smallest norm. A penalty (Ridge) makes them stable.",
        DataWarning,
        stacklevel=4,
    )
