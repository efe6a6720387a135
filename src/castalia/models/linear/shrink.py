"""Shrinking towards zero by a power of the absolute value, and projecting on its ball.

shrink(v) = argmin_w 1/2 (w - v)^2 + t |w|^q, number by number. q = 1 is soft thresholding, q = 2
divides by 1 + 2t, and q < 1 sets to zero or moves little.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq

__all__ = ["project", "shrink"]


def shrink(v: np.ndarray, t: np.ndarray | float, q: float) -> np.ndarray:
    """Return argmin_w 1/2 (w - v)^2 + t |w|^q, the global one also where q < 1 makes two.

    Parameters
    ----------
    v
        Numbers.
    t
        Weight of the penalty, at least 0, one for all or of the shape of v.
    q
        Power, above 0.

    Examples
    --------
    >>> shrink(np.array([3.0, -0.5]), 1.0, 1).tolist()
    [2.0, -0.0]
    >>> shrink(np.array([3.0]), 1.0, 2).tolist()
    [1.0]
    """
    size, t = np.abs(v), np.broadcast_to(np.asarray(t, dtype=np.float64), v.shape)
    if q == 1:
        found = np.maximum(size - t, 0)
    elif q < 1:
        found = _shrink_concave(size, t, q)
    else:
        found = _shrink_convex(size, t, q)
    return np.copysign(found, v)


def _shrink_convex(a: np.ndarray, t: np.ndarray, q: float) -> np.ndarray:
    """Solve w + t q w^(q-1) = a by Newton steps that fall to the root, for q above 1.

    Below q = 2 the equation is solved for u = w^(q-1), in which it is convex.
    """
    p, slope = q - 1, t * q
    with np.errstate(divide="ignore", over="ignore"):
        highest = np.minimum(a, (a / slope) ** (1 / p))  # each term alone is at most a
    if q >= 2:
        return _newton(highest, lambda w: (w + slope * w**p - a, 1 + slope * p * w ** (p - 1)))
    r = 1 / p
    found = _newton(highest**p, lambda u: (u**r + slope * u - a, r * u ** (r - 1) + slope))
    return found**r


def _shrink_concave(a: np.ndarray, t: np.ndarray, q: float) -> np.ndarray:
    """Take the largest root of w + t q w^(q-1) = a where it beats zero, for q below 1."""
    least = (2 - q) / (2 * (1 - q)) * (2 * t * (1 - q)) ** (1 / (2 - q))
    keep = a > least
    b, slope = np.where(keep, a, 1.0), np.where(keep, t * q, 0.0)
    found = _newton(b, lambda w: (w + slope * w ** (q - 1) - b, 1 + slope * (q - 1) * w ** (q - 2)))
    return np.where(keep, found, 0.0)


def _newton(
    start: np.ndarray, function: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
) -> np.ndarray:
    """Follow Newton's steps down to the root of convex rising functions, from above it."""
    x = start
    for _ in range(60):
        value, slope = function(x)
        with np.errstate(invalid="ignore", divide="ignore"):
            lower = np.where(value > 0, x - value / slope, x)
        if not (lower < x).any():
            break
        x = np.maximum(lower, 0)
    return x


def project(v: np.ndarray, weight: np.ndarray, q: float, bound: float) -> np.ndarray:
    """Return the point nearest to v with sum_j weight_j |w_j|^q <= bound, for q of at least 1.

    It is ``shrink`` with the penalty that just meets the bound.

    >>> project(np.array([3.0, 4.0]), np.ones(2), 2, 1.0).round(6).tolist()
    [0.6, 0.8]
    """

    def excess(t: float) -> float:
        return float((weight * np.abs(shrink(v, t * weight, q)) ** q).sum()) - bound

    if excess(0.0) <= 0:
        return v
    high = 1.0
    while excess(high) > 0:
        high *= 4
    t = brentq(excess, 0.0, high, xtol=1e-300, rtol=4 * np.finfo(float).eps)
    return shrink(v, t * weight, q)
