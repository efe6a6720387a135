"""Probability tables: is it one, and what follows from a joint one.

P(a) = sum_b P(a, b),  P(a | b) = P(a, b) / P(b).  A table has one dimension a variable.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from castalia.errors import InvalidData, InvalidParameter
from castalia.probability.information import as_numbers

__all__ = [
    "chain_rule",
    "conditional",
    "conditionally_independent",
    "is_pdf",
    "is_pmf",
    "marginal",
    "table_size",
]


def is_pmf(p: Any, *, tolerance: float = 1e-6) -> bool:
    """Whether numbers are probabilities of all outcomes: none negative, and together 1.

    Examples
    --------
    >>> is_pmf([0.2, 0.8]), is_pmf([0.2, 0.9]), is_pmf([-0.2, 1.2])
    (True, False, False)
    """
    p = as_numbers(p)
    return bool((p >= 0).all()) and abs(float(p.sum()) - 1) <= tolerance


def is_pdf(
    density: Callable[[np.ndarray], Any],
    low: float = -np.inf,
    high: float = np.inf,
    *,
    tolerance: float = 1e-6,
) -> bool:
    """Whether a function of one number is a density: nowhere negative, and its integral is 1.

    The integral is numeric and the sign is checked where the integral is evaluated: a narrow spike
    far from everything may be missed, so give the bounds where you know them.

    Examples
    --------
    >>> is_pdf(lambda x: np.exp(-x * x / 2) / np.sqrt(2 * np.pi)), is_pdf(np.cos, 0, np.pi / 2)
    (True, True)
    >>> is_pdf(lambda x: 1.5 * x - 0.5 * x**3, 0, 2)
    False
    """
    from scipy.integrate import quad

    seen: list[float] = []

    def watched(x: float) -> float:
        seen.append(float(density(np.asarray(x, dtype=float))))
        return seen[-1]

    total = quad(watched, low, high, limit=200)[0]
    return min(seen) >= 0 and abs(total - 1) <= tolerance


def marginal(joint: Any, keep: int | Sequence[int]) -> Tensor:
    """Sum a joint table over all variables but some.

    Examples
    --------
    >>> marginal([[0.1, 0.3], [0.2, 0.4]], keep=0)
    tensor([0.4000, 0.6000], dtype=torch.float64)
    """
    joint, kept = _joint("marginal", joint, keep)
    rest = [axis for axis in range(joint.ndim) if axis not in kept]
    return joint.sum(dim=rest) if rest else joint


def conditional(joint: Any, given: int | Sequence[int]) -> Tensor:
    """Return P(the others | given): the joint table divided by the marginal of what is given.

    Every slice with the given variables fixed sums to 1; where the given values are impossible it
    is nan, for nothing follows from them.

    Examples
    --------
    >>> conditional([[0.1, 0.3], [0.2, 0.4]], given=0)
    tensor([[0.2500, 0.7500],
            [0.3333, 0.6667]], dtype=torch.float64)
    """
    joint, kept = _joint("conditional", joint, given)
    rest = [axis for axis in range(joint.ndim) if axis not in kept]
    total = joint.sum(dim=rest, keepdim=True) if rest else joint
    return torch.where(total > 0, joint / total, torch.nan)


def _joint(owner: str, joint: Any, axes: int | Sequence[int]) -> tuple[Tensor, list[int]]:
    table = as_numbers(joint)
    if not is_pmf(table):
        raise InvalidData(
            f"{owner}: `joint` must hold probabilities that sum to 1; they sum to "
            f"{float(table.sum()):g}."
        )
    chosen = [axes] if isinstance(axes, int) else list(axes)
    if any(not 0 <= axis < table.ndim for axis in chosen):
        raise InvalidParameter(
            f"{owner}: variables must be numbers from 0 to {table.ndim - 1}; got {chosen}."
        )
    return table, chosen


def table_size(states: Sequence[int]) -> int:
    """Return how many entries a joint table has, one for each combination; all but one are free.

    Examples
    --------
    >>> table_size([100, 100, 100]) - 1
    999999
    """
    if any(k < 1 for k in states):
        raise InvalidParameter(
            f"table_size: `states` must be whole numbers of at least 1; got {list(states)}."
        )
    return math.prod(states)


def chain_rule(joint: Any) -> list[Tensor]:
    """Split a joint table into P(x1), P(x2 | x1), … P(xn | x1 … xn-1), whose product it is.

    Factor i has the axes of the first i variables; entries under an impossible condition are nan.

    Examples
    --------
    >>> first, second = chain_rule([[0.1, 0.3], [0.2, 0.4]])
    >>> first, second
    (tensor([0.4000, 0.6000], dtype=torch.float64), tensor([[0.2500, 0.7500],
            [0.3333, 0.6667]], dtype=torch.float64))
    """
    table, _ = _joint("chain_rule", joint, [])
    heads = [marginal(table, list(range(i + 1))) for i in range(table.ndim)]
    return [conditional(head, list(range(i))) if i else head for i, head in enumerate(heads)]


def conditionally_independent(
    joint: Any,
    first: int,
    second: int,
    given: Sequence[int] = (),
    *,
    tolerance: float = 1e-9,
) -> bool:
    """Whether P(a, b | c) = P(a | c) P(b | c), for every c that is possible.

    It is the same as P(a | b, c) = P(a | c) wherever b and c are possible.

    Examples
    --------
    >>> conditionally_independent([[0.08, 0.12], [0.32, 0.48]], 0, 1)
    True
    """
    table, _ = _joint("conditionally_independent", joint, [first, second, *given])
    kept = sorted({first, second, *given})
    part = marginal(table, kept)
    a, b = kept.index(first), kept.index(second)
    whole = part.sum(dim=(a, b), keepdim=True)
    product = part.sum(dim=b, keepdim=True) * part.sum(dim=a, keepdim=True)
    return bool((part * whole - product).abs().max() <= tolerance)
