"""A Las Vegas algorithm: its answer is always right, its time is random.

Quickselect compares with a random pivot and goes on in the part where the answer lies: 2 n to 4 n
comparisons on average, n^2 / 2 at worst. A Monte-Carlo estimate is its opposite: fixed time, random
error.
Reference: 1961, Hoare, Algorithm 65: find.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from castalia.errors import InvalidParameter
from castalia.utils.seeds import seed_from

__all__ = ["Selection", "las_vegas"]


class Selection(NamedTuple):
    """The value that was asked for, and the comparisons that it took."""

    value: float
    comparisons: int


def las_vegas(values: Sequence[float], k: int, *, random_state: Any = None) -> Selection:
    """Find the k-th smallest value (from 0) by random pivots.

    Examples
    --------
    >>> las_vegas([9.0, 1.0, 5.0, 7.0], 1, random_state=0).value
    5.0
    """
    left = np.asarray(values, dtype=np.float64)
    if not 0 <= k < len(left):
        raise InvalidParameter(
            f"las_vegas: `k` must be from 0 to {len(left) - 1}, the number of values less 1; got "
            f"{k!r}."
        )
    random, comparisons = np.random.default_rng(seed_from(random_state)), 0
    while True:
        pivot = left[random.integers(len(left))]
        below, equal = left[left < pivot], int((left == pivot).sum())
        comparisons += len(left) - 1
        if k < len(below):
            left = below
        elif k < len(below) + equal:
            return Selection(float(pivot), comparisons)
        else:
            k -= len(below) + equal
            left = left[left > pivot]
