"""How far to go along a ray: phi(t) = f(w + t d), given phi(0) and phi'(0) < 0.

A *ray* is a function from a length t to the ``Point`` there; each call costs one evaluation of the
gradient. Reference: 2006, Nocedal, Wright, Numerical optimization, 2nd ed., chapter 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["Point", "Ray", "exact_line_search", "strong_wolfe"]


LONGEST = 1e8  # growth of a trial at once, where the secant rule asks for it


class Point(NamedTuple):
    """A point on a ray: its length t, f there, the slope phi'(t) = g d, and the gradient g."""

    length: float
    value: float
    slope: float
    gradient: Tensor


Ray = Callable[[float], Point]


def strong_wolfe(
    ray: Ray,
    start: Point,
    trial: float = 1.0,
    *,
    decrease: float = 1e-4,
    curvature: float = 0.1,
    evaluations: int = 25,
) -> Point:
    """Find a length that meets the strong Wolfe conditions.

    phi(t) <= phi(0) + c1 t phi'(0)  and  |phi'(t)| <= c2 |phi'(0)|. Trials grow until they bracket
    such a length, then the bracket is narrowed by cubic interpolation (Nocedal and Wright,
    algorithms 3.5 and 3.6). A trial that is not finite counts as too long. When the evaluations
    run out, the best point that met the first condition is returned; that may be the start.

    Parameters
    ----------
    ray
        From a length to the point there.
    start
        The point at length 0; its slope must be negative.
    trial
        First length to try.
    decrease, curvature
        c1 and c2, with 0 < c1 < c2 < 1; a smaller c2 asks for a more exact search.
    evaluations
        Most points to try.

    Examples
    --------
    >>> def ray(t):  # phi(t) = (t - 3)^2
    ...     return Point(t, (t - 3) ** 2, 2 * (t - 3), torch.tensor([2 * (t - 3)]))
    >>> strong_wolfe(ray, ray(0.0), trial=1.0).length
    3.0
    """
    # A rise within rounding is no rise: near the minimum phi is flat to the last digit.
    noise = torch.finfo(start.gradient.dtype).eps * abs(start.value)

    def falls(point: Point) -> bool:
        bound = start.value + decrease * point.length * start.slope + noise
        return point.value <= bound and math.isfinite(point.slope)

    def flat(point: Point) -> bool:
        return abs(point.slope) <= -curvature * start.slope

    low, length = start, trial
    for used in range(1, evaluations + 1):
        now = ray(length)
        left = evaluations - used
        if not falls(now) or (low is not start and now.value >= low.value + noise):
            return _narrow(ray, low, now, falls, flat, left, noise)
        if flat(now):
            return now
        if now.slope >= 0:
            return _narrow(ray, now, low, falls, flat, left, noise)
        low, length = now, _further(length, _cubic_minimum(low, now))
    return low


def _further(length: float, guess: float) -> float:
    """A longer trial: the guess, if it is 2 to 10 times as long; 4 times without a guess."""
    return 4 * length if math.isnan(guess) else min(max(guess, 2 * length), 10 * length)


def _narrow(
    ray: Ray,
    low: Point,
    high: Point,
    falls: Callable[[Point], bool],
    flat: Callable[[Point], bool],
    evaluations: int,
    noise: float,
) -> Point:
    """Narrow a bracket: ``low`` is its best point so far and slopes towards ``high``."""
    for _ in range(evaluations):
        width = high.length - low.length
        if abs(width * low.slope) <= noise:  # no fall left above rounding
            break
        share = (_cubic_minimum(low, high) - low.length) / width
        share = 0.5 if math.isnan(share) else min(max(share, 0.05), 0.95)
        now = ray(low.length + share * width)
        if not falls(now) or now.value > low.value:
            high = now
        elif flat(now):
            return now
        else:
            if now.slope * width >= 0:
                high = low
            low = now
    return low


def _cubic_minimum(a: Point, b: Point) -> float:
    """Where the cubic through two values and slopes has its minimum; NaN if there is none."""
    if not (math.isfinite(b.value) and math.isfinite(b.slope)):
        return math.nan
    width = b.length - a.length
    bend = a.slope + b.slope - 3 * (b.value - a.value) / width
    root = bend * bend - a.slope * b.slope
    if root < 0:
        return math.nan
    root = math.copysign(math.sqrt(root), width)
    bottom = b.slope - a.slope + 2 * root
    return b.length - width * (b.slope + root - bend) / bottom if bottom else math.nan


def exact_line_search(
    ray: Ray,
    start: Point,
    trial: float = 1.0,
    *,
    tolerance: float = 1e-9,
    evaluations: int = 25,
) -> Point:
    """Find where the slope vanishes: t with |phi'(t)| <= tolerance |phi'(0)|.

    By the secant rule on phi', which is exact for a quadratic after one trial, whatever its length;
    once the root is bracketed, it stays so. Elsewhere it costs more evaluations than it is worth:
    prefer ``strong_wolfe``.

    Parameters
    ----------
    ray
        From a length to the point there.
    start
        The point at length 0; its slope must be negative.
    trial
        First length to try.
    tolerance
        Slope that counts as zero, relative to the first.
    evaluations
        Most points to try; the best so far is returned.

    Examples
    --------
    >>> def ray(t):  # phi(t) = 5 (t - 3)^2
    ...     return Point(t, 5 * (t - 3) ** 2, 10 * (t - 3), torch.tensor([10 * (t - 3)]))
    >>> exact_line_search(ray, ray(0.0), trial=0.25).length
    3.0
    """
    noise = torch.finfo(start.gradient.dtype).eps * abs(start.value)
    low, high, best, length = start, None, start, trial
    for _ in range(evaluations):
        now = ray(length)
        if not (math.isfinite(now.value) and math.isfinite(now.slope)):
            length = 0.5 * (low.length + length)  # too far: back towards the last good point
            continue
        if now.value <= best.value or abs(now.slope) <= tolerance * -start.slope:
            best = now
        if abs(now.slope) <= tolerance * -start.slope:
            break
        secant = _secant_root(low, now)
        low, high = (now, high) if now.slope < 0 else (low, now)
        if high is None:
            length = secant if now.length < secant < LONGEST * now.length else 2 * now.length
        else:
            inside = low.length < secant < high.length
            length = secant if inside else 0.5 * (low.length + high.length)
        if abs(now.slope * (length - now.length)) <= noise:  # rounding hides any further fall
            break
    return best


def _secant_root(a: Point, b: Point) -> float:
    rise = b.slope - a.slope
    return b.length - b.slope * (b.length - a.length) / rise if rise else math.nan
