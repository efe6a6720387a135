"""What one setting may be: numbers between two bounds, or one of some values.

A list stands for a choice, and scipy's ``uniform``, ``loguniform`` and ``randint`` for what they
say, so that a space written for scikit-learn's searches will do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from castalia.errors import InvalidParameter

__all__ = ["Choice", "Domain", "Uniform", "Whole", "as_domain", "points_of"]


@dataclass(frozen=True)
class Uniform:
    """Numbers between two bounds; with ``log`` every order of magnitude is as likely."""

    low: float
    high: float
    log: bool = False


@dataclass(frozen=True)
class Whole:
    """Whole numbers between two bounds, both included."""

    low: int
    high: int
    log: bool = False


@dataclass(frozen=True)
class Choice:
    """One of some values, of any kind."""

    values: tuple[Any, ...]

    def __init__(self, *values: Any) -> None:
        object.__setattr__(self, "values", values)


Domain = Uniform | Whole | Choice


def points_of(domain: Domain, points: int) -> tuple[Any, ...]:
    """Return some values of a domain, evenly, or by even factors on a log scale.

    >>> points_of(Uniform(1e-3, 1e-1, log=True), 3)
    (0.001, 0.01, 0.1)
    """
    if isinstance(domain, Choice):
        return domain.values
    spaced = (np.geomspace if domain.log else np.linspace)(domain.low, domain.high, points)
    if isinstance(domain, Whole):
        return tuple(dict.fromkeys(int(v) for v in spaced.round()))
    return tuple(float(f"{v:.6g}") for v in spaced)


def as_domain(owner: str, name: str, given: Any) -> Domain:
    """Return what a user gave for a parameter as a domain, checked."""
    if isinstance(given, Uniform | Whole | Choice):
        domain: Domain = given
    elif isinstance(given, np.ndarray):
        domain = Choice(*given.tolist())
    elif isinstance(given, Sequence) and not isinstance(given, str):
        domain = Choice(*given)
    else:
        domain = _from_scipy(owner, name, given)
    _check(owner, name, domain)
    return domain


def _from_scipy(owner: str, name: str, given: Any) -> Domain:
    kind = getattr(getattr(given, "dist", None), "name", None)
    if kind in ("uniform", "loguniform", "reciprocal"):
        low, high = given.support()
        return Uniform(float(low), float(high), log=kind != "uniform")
    if kind == "randint":
        low, high = given.support()
        return Whole(int(low), int(high))
    raise InvalidParameter(
        f"{owner}: the domain of `{name}` must be Uniform, Whole, Choice, a list of values, or "
        f"scipy's uniform, loguniform or randint; got {given!r}."
    )


def _check(owner: str, name: str, domain: Domain) -> None:
    if isinstance(domain, Choice):
        if not domain.values:
            raise InvalidParameter(f"{owner}: the choice for `{name}` must hold a value or more.")
        return
    if not domain.low < domain.high:
        raise InvalidParameter(
            f"{owner}: the bounds of `{name}` must ascend; got {domain.low} and {domain.high}."
        )
    if domain.log and domain.low <= 0:
        raise InvalidParameter(
            f"{owner}: the lower bound of `{name}` must be above 0 on a log scale; got "
            f"{domain.low}."
        )
