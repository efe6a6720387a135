"""Shrinking towards zero by a power of the absolute value, and projecting on its ball.

shrink(v) = argmin_w 1/2 (w - v)^2 + t |w|^q, number by number. q = 1 is soft thresholding, q = 2
divides by 1 + 2t, and q < 1 sets to zero or moves little.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

__all__ = ["project", "shrink"]

STEPS = 60  # of Newton at most; five to ten are usual


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
    """Solve w + t q w^(q-1) = a for q above 1.

    With w = e^z it reads log(e^z + t q e^((q-1)z)) = log a, where the left side is convex and bends
    only once: Newton's steps fall to the root in a few.
    """
    p, some = q - 1, a > 0
    with np.errstate(divide="ignore"):
        top, slope = np.log(np.where(some, a, 1.0)), np.log(t * q)
    z = np.minimum(top, (top - slope) / p)  # each term alone is at most a
    for _ in range(STEPS):
        one, two = z, slope + p * z
        total = np.logaddexp(one, two)
        share = np.exp(two - total)
        step = (total - top) / (1 - share + p * share)
        z = z - step
        if (np.abs(step) <= 1e-15 * (1 + np.abs(z))).all():
            break
    return np.where(some, np.exp(z), 0.0)


def _shrink_concave(a: np.ndarray, t: np.ndarray, q: float) -> np.ndarray:
    """Take the largest root of w + t q w^(q-1) = a where it beats zero, for q below 1.

    The left side is convex, so Newton's steps fall to that root from a.
    """
    least = (2 - q) / (2 * (1 - q)) * (2 * t * (1 - q)) ** (1 / (2 - q))
    keep = (a > least) & (t > 0)
    b, slope = np.where(keep, a, 1.0), np.where(keep, t * q, 0.0)
    w = b
    for _ in range(STEPS):
        value, rise = w + slope * w ** (q - 1) - b, 1 - slope * (1 - q) * w ** (q - 2)
        w = w - value / rise
        if (np.abs(value) <= 1e-15 * b).all():
            break
    return np.where(keep, w, np.where(t > 0, 0.0, a))


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
