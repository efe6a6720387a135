"""An estimator that knows its data but has learnt nothing: the start of trainings in parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from castalia.utils.seeds import seed_from, seed_scope

__all__ = ["untrained"]


def untrained(
    member: Any,
    X: Any,
    y: np.ndarray,
    weight: np.ndarray | None = None,
    classes: np.ndarray | None = None,
) -> Any:
    """Learn columns, scales and classes from rows, draw the first weights, and return it.

    ``partial_fit`` goes on from there, on any part of the rows. Classes that the rows do not all
    have are given.
    """
    member._first_rows(X, y, weight, classes)
    with seed_scope(seed_from(member.random_state)):
        member.module_ = member._network(member.spec_)
    member.history_, member.n_iter_ = [], 0
    return member
