"""Values that are missing inside sequences: refused, carried forward, or set to the mean."""

from __future__ import annotations

import numpy as np

from castalia.errors import InvalidData

__all__ = ["WAYS", "fill", "refuse_missing"]

WAYS = ("error", "forward", "mean")


def refuse_missing(steps: list[np.ndarray], owner: str, channels: list[str]) -> None:
    """Refuse NaN and infinity, and name the first."""
    for place, each in enumerate(steps):
        bad = ~np.isfinite(each)
        if bad.any():
            row, column = np.argwhere(bad)[0]
            total = sum(int((~np.isfinite(one)).sum()) for one in steps)
            raise InvalidData(
                f"{owner}: sequences must hold no NaN or infinity; got {total:,}, first in "
                f"sequence {place}, step {row}, channel `{channels[column]}`. Set "
                "missing='forward' to carry the last value on, or missing='mean'."
            )


def fill(values: np.ndarray, how: str, mean: np.ndarray) -> np.ndarray:
    """Return steps (T, C) with what is missing filled in; nothing is read from the future.

    Parameters
    ----------
    values
        Steps; NaN and infinity are missing.
    how
        ``"forward"`` takes the value before, or the mean where there is none; ``"mean"`` the mean.
    mean
        Of each channel, (C,).

    Examples
    --------
    >>> fill(np.array([[np.nan], [2.0], [np.nan]]), "forward", np.array([7.0])).ravel().tolist()
    [7.0, 2.0, 2.0]
    """
    there = np.isfinite(values)
    if there.all():
        return values
    if how == "mean":
        return np.where(there, values, mean.astype(values.dtype))
    last = np.maximum.accumulate(np.where(there, np.arange(len(values))[:, None], -1), axis=0)
    carried = np.take_along_axis(values, last.clip(0), axis=0)
    return np.where(last >= 0, carried, mean.astype(values.dtype))
