"""Declared constraints on constructor parameters, checked at ``fit``.

A field is written ``dropout: Annotated[float, Interval(0, 1, closed="left")] = 0.0``; the error is
made from the constraint.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache
from inspect import signature
from numbers import Integral, Real
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import numpy as np
from sklearn.base import BaseEstimator

from castalia.errors import InvalidParameter
from castalia.utils.text import did_you_mean, listing

__all__ = [
    "Constraint",
    "Interval",
    "OneOf",
    "RandomState",
    "Sizes",
    "check_parameters",
    "check_tokens",
    "fields_for",
    "parameter_names",
]


class Constraint:
    """A rule on one value."""

    def rule(self) -> str:
        """Say the rule: the words after "must be"."""
        raise NotImplementedError

    def holds(self, value: Any) -> bool:
        """Whether the value obeys."""
        raise NotImplementedError

    def hint(self, value: Any) -> str:
        """Suggest a near miss."""
        return ""


@dataclass(frozen=True)
class Interval(Constraint):
    """Numbers between two bounds; ``whole`` asks for whole ones, ``optional`` allows None."""

    low: float
    high: float = float("inf")
    closed: str = "both"
    whole: bool = False
    optional: bool = False

    def rule(self) -> str:
        """Say the bounds."""
        kind = "a whole number" if self.whole else "a number"
        low = f"at least {self.low:g}" if self.closed in ("both", "left") else f"above {self.low:g}"
        high = ""
        if self.high != float("inf"):
            word = "at most" if self.closed in ("both", "right") else "below"
            high = f" and {word} {self.high:g}"
        return f"{kind} {low}{high}{' or None' if self.optional else ''}"

    def holds(self, value: Any) -> bool:
        """Whether the value is a number inside."""
        if value is None:
            return self.optional
        if isinstance(value, bool | np.bool_) or not isinstance(
            value, Integral if self.whole else Real
        ):
            return False
        x = float(value)
        above = x >= self.low if self.closed in ("both", "left") else x > self.low
        below = x <= self.high if self.closed in ("both", "right") else x < self.high
        return above and below


class OneOf(Constraint):
    """One of some values."""

    def __init__(self, *values: Any) -> None:
        self.values = values

    def rule(self) -> str:
        """List the values."""
        return listing(self.values)

    def holds(self, value: Any) -> bool:
        """Whether the value is among them."""
        return any(value is v or (type(value) is type(v) and value == v) for v in self.values)

    def hint(self, value: Any) -> str:
        """Suggest the nearest word."""
        return did_you_mean(str(value), [v for v in self.values if isinstance(v, str)])


class Sizes(Constraint):
    """A tuple or list of positive whole numbers; may be empty."""

    def rule(self) -> str:
        """Say so."""
        return "a tuple of positive whole numbers"

    def holds(self, value: Any) -> bool:
        """Whether every entry is a positive whole number."""
        whole = Interval(1, whole=True)
        return isinstance(value, tuple | list) and all(whole.holds(size) for size in value)


class RandomState(Constraint):
    """What scikit-learn accepts as ``random_state``."""

    def rule(self) -> str:
        """Say so."""
        return "a whole number of at least 0 and below 2^63, a numpy random generator, or None"

    def holds(self, value: Any) -> bool:
        """Whether it can seed."""
        generators = (np.random.RandomState, np.random.Generator)
        seed = Interval(0, 2.0**63, closed="left", whole=True, optional=True)
        return isinstance(value, generators) or seed.holds(value)


@cache
def _constraints(cls: type) -> dict[str, Constraint]:
    found: dict[str, Constraint] = {}
    for name, hint in get_type_hints(cls, include_extras=True).items():
        if get_origin(hint) is Annotated:
            rules = [rule for rule in get_args(hint)[1:] if isinstance(rule, Constraint)]
            found.update({name: rules[0]} if rules else {})
    return found


def _rules_of(owner: Any) -> dict[str, Constraint]:
    cls: Any = type(owner)
    return _constraints(cls)


def check_parameters(owner: Any) -> None:
    """Raise ``InvalidParameter`` for the first parameter that breaks its declared rule."""
    for name, constraint in _rules_of(owner).items():
        value = getattr(owner, name)
        if not constraint.holds(value):
            raise InvalidParameter(
                f"{type(owner).__name__}: `{name}` must be {constraint.rule()}; got "
                f"{value!r}.{constraint.hint(value)}"
            )


def check_tokens(owner: Any, lengths: Any, tokens: int | None) -> None:
    """Raise ``InvalidParameter`` where a row, (N, S) lengths, has more than a batch may have."""
    longest = 0 if lengths is None else int(lengths.max())
    if tokens is not None and tokens < longest:
        raise InvalidParameter(
            f"{type(owner).__name__}: `batch_tokens` must be at least {longest}, the tokens of "
            f"the longest text; got {tokens}. Lower `context` to cut long texts."
        )


def fields_for(owner: Any, network: Callable[..., Any]) -> dict[str, Any]:
    """Return the fields of an estimator that are arguments of its network, by name.

    >>> @dataclass
    ... class Model:
    ...     hidden: int = 8
    ...     lr: float = 0.1
    >>> fields_for(Model(), lambda inputs, hidden: None)
    {'hidden': 8}
    """
    wanted = signature(network).parameters
    return {f.name: getattr(owner, f.name) for f in fields(owner) if f.name in wanted}


@cache
def parameter_names(cls: type[BaseEstimator]) -> list[str]:
    """Return the names that scikit-learn reads off a constructor at every ``get_params``: once."""
    found: list[str] = BaseEstimator._get_param_names.__func__(cls)
    return found
