"""Windows over a long series: some steps of the past beside those to be forecast.

Shapes: S steps of the series, C channels, n windows, L length, H horizon.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from castalia.errors import InvalidData, InvalidParameter
from castalia.utils.text import plural

__all__ = ["Windows", "check_steps", "windows"]


class Windows(NamedTuple):
    """Pairs of past and future; both are views of the series.

    Attributes
    ----------
    past
        (n, L, C), or (n, L) of a series (S,).
    future
        (n, H, C) or (n, H).
    start
        First step of each past, (n,).
    """

    past: np.ndarray
    future: np.ndarray
    start: np.ndarray


def windows(
    series: Any, length: int, horizon: int = 1, *, stride: int = 1, gap: int = 0
) -> Windows:
    """Cut a series into pairs of past and future, in the order of time.

    Parameters
    ----------
    series
        Steps, (S,) or (S, C).
    length
        Steps of the past.
    horizon
        Steps of the future.
    stride
        Steps from one pair to the next.
    gap
        Steps between past and future that are not known when the forecast is made.

    Examples
    --------
    >>> found = windows(np.arange(6), 3, 2)
    >>> found.past.tolist(), found.future.tolist()
    ([[0, 1, 2], [1, 2, 3]], [[3, 4], [4, 5]])
    """
    for name, value, least in (
        ("length", length, 1),
        ("horizon", horizon, 1),
        ("stride", stride, 1),
        ("gap", gap, 0),
    ):
        if not isinstance(value, int | np.integer) or value < least:
            raise InvalidParameter(
                f"windows: `{name}` must be a whole number of at least {least}; got {value!r}."
            )
    values = np.asarray(series)
    if values.ndim not in (1, 2):
        raise InvalidData(f"windows: a series must be (S,) or (S, C); got shape {values.shape}.")
    check_steps("windows", len(values), length, horizon, gap)
    whole = sliding_window_view(values, length + gap + horizon, axis=0)[::stride]
    whole = np.moveaxis(whole, -1, 1)  # (n, L + gap + H) or (n, L + gap + H, C)
    start = np.arange(len(whole)) * stride
    return Windows(whole[:, :length], whole[:, length + gap :], start)


def check_steps(owner: str, steps: int, length: int, horizon: int, gap: int = 0) -> None:
    """Refuse a series too short for one window."""
    if steps < length + gap + horizon:
        between = f" after a gap of {gap}" if gap else ""
        raise InvalidData(
            f"{owner}: a series must have {length + gap + horizon} steps at least, {length} of "
            f"the past and {horizon} to forecast{between}; got {plural(steps, 'step')}. Shorten "
            "the window or the horizon."
        )
