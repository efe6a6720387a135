"""Rows whose content is there twice: one on each side of a split would be tested from memory."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["Copies", "find_copies"]


class Copies(NamedTuple):
    """Rows to keep, by number, and two masks of those left out: copies, and disputed ones."""

    kept: np.ndarray
    copied: np.ndarray
    disputed: np.ndarray


def find_copies(contents: np.ndarray, labels: np.ndarray) -> Copies:
    """Keep each content once.

    A content that is there under several labels is left out altogether: one of them is wrong, and
    nobody knows which.

    Examples
    --------
    >>> find_copies(np.array(["a", "b", "a", "b"]), np.array([0, 1, 0, 0])).kept
    array([0])
    """
    kinds, first, place = np.unique(contents, return_index=True, return_inverse=True)
    codes = np.unique(labels, return_inverse=True)[1]
    low, high = np.full(len(kinds), len(contents)), np.full(len(kinds), -1)
    np.minimum.at(low, place, codes)
    np.maximum.at(high, place, codes)
    disputed = (low != high)[place]
    kept = np.zeros(len(contents), dtype=bool)
    kept[first] = True
    return Copies(np.flatnonzero(kept & ~disputed), ~kept & ~disputed, disputed)
