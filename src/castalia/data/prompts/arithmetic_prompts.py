"""Arithmetic as a probe of language models: questions in words whose answers are known.

After the tasks of GPT-3: sums and differences of numbers of a few digits, and one-digit sums with
brackets. Reference: 2020, Brown et al., Language models are few-shot learners, arXiv 2005.14165.
Departs from it: brackets may also stand round the first two numbers.
"""

from __future__ import annotations

from operator import add, mul, sub
from typing import Any, NamedTuple

import numpy as np

from castalia.errors import InvalidParameter
from castalia.utils.seeds import seed_from
from castalia.utils.text import did_you_mean, listing

__all__ = ["Sum", "arithmetic_probe", "compose", "compute"]

_DO = {"+": add, "-": sub, "*": mul}
_SAY = {"+": "plus", "-": "minus", "*": "times"}
_KINDS = {"addition": "+", "subtraction": "-", "multiplication": "*"}


class Sum(NamedTuple):
    """A question and its answer; fields of ``ANSWER_QUESTION``."""

    question: str
    answer: str


def compute(a: int, sign: str, b: int) -> Sum:
    """Return the question of two numbers.

    Examples
    --------
    >>> compute(48, "+", 76)
    Sum(question='What is 48 plus 76?', answer='124')
    """
    found = _result(a, sign, b)
    return Sum(f"What is {a} {_SAY[sign]} {b}?", str(found))


def compose(a: int, first: str, b: int, second: str, c: int, *, left: bool = True) -> Sum:
    """Return the question of three numbers with brackets.

    Parameters
    ----------
    a, b, c
        The numbers.
    first, second
        Signs, ``"+"``, ``"-"`` or ``"*"``.
    left
        Whether brackets stand round the first two numbers, or round the last two.

    Examples
    --------
    >>> compose(2, "*", 4, "*", 6)
    Sum(question='What is (2*4)*6?', answer='48')
    >>> compose(6, "+", 4, "*", 8, left=False)
    Sum(question='What is 6+(4*8)?', answer='38')
    """
    if left:
        found = _result(_result(a, first, b), second, c)
        return Sum(f"What is ({a}{first}{b}){second}{c}?", str(found))
    return Sum(
        f"What is {a}{first}({b}{second}{c})?", str(_result(a, first, _result(b, second, c)))
    )


def _result(a: int, sign: str, b: int) -> int:
    if sign not in _DO:
        raise InvalidParameter(f"arithmetic: a sign must be {listing(_DO)}; got {sign!r}.")
    return int(_DO[sign](a, b))


def arithmetic_probe(
    kind: str, n: int = 100, *, digits: int = 2, random_state: Any = None
) -> list[Sum]:
    """Return questions with numbers drawn from all of at most some digits.

    Parameters
    ----------
    kind
        ``"addition"``, ``"subtraction"``, ``"multiplication"``, or ``"composite"``: three one-digit
        numbers with brackets.
    n
        How many.
    digits
        Most digits of a number; composite questions always have one.
    random_state
        Seed.

    Examples
    --------
    >>> arithmetic_probe("subtraction", 1, random_state=0)
    [Sum(question='What is 85 minus 63?', answer='22')]
    """
    kinds = (*_KINDS, "composite")
    if kind not in kinds:
        raise InvalidParameter(
            f"arithmetic_probe: `kind` must be {listing(kinds)}; got {kind!r}."
            f"{did_you_mean(kind, kinds)}"
        )
    if n < 1 or digits < 1:
        raise InvalidParameter(
            f"arithmetic_probe: `n` and `digits` must be whole numbers from 1; got {n} and "
            f"{digits}."
        )
    random = np.random.default_rng(seed_from(random_state))
    if kind != "composite":
        numbers = random.integers(10**digits, size=(n, 2)).tolist()
        return [compute(a, _KINDS[kind], b) for a, b in numbers]
    numbers = random.integers(10, size=(n, 3)).tolist()
    signs = random.choice(list(_DO), size=(n, 2)).tolist()
    sides = random.integers(2, size=n).astype(bool).tolist()
    return [
        compose(a, first, b, second, c, left=left)
        for (a, b, c), (first, second), left in zip(numbers, signs, sides, strict=True)
    ]
