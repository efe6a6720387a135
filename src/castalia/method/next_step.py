"""What to do next, by the rule of the practical method: fit, gap, or done.

Training error above the goal: more data cannot help; make the model bigger, tune the rate, and if
that fails inspect the data. Training error below it and validation error above: gather more data if
the learning curve says that it pays, regularise otherwise.
Reference: 2016, Goodfellow, Bengio, Courville, Deep learning, chapter 11.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from castalia.errors import InvalidData
from castalia.utils.text import number

__all__ = ["ACTIONS", "NextStep", "next_step"]

ACTIONS = ("improve-the-fit", "gather-data", "regularise", "done")
FLAT = 0.05  # exponent of the learning curve below which it has levelled off
MOST_TIMES = 100.0  # growth of the data beyond which gathering is no advice


@dataclass(frozen=True)
class NextStep:
    """What to do next, and why.

    Attributes
    ----------
    action
        One of `ACTIONS`.
    words
        The reason with its numbers.
    rows
        Rows that the learning curve says are needed; None where unknown.
    """

    action: str
    words: str
    rows: int | None = None


def next_step(
    train_error: float,
    validation_error: float,
    goal: float,
    *,
    sizes: Sequence[int] | None = None,
    errors: Sequence[float] | None = None,
) -> NextStep:
    """Decide between a better fit, more data and more regularisation.

    Examples
    --------
    >>> next_step(0.30, 0.32, goal=0.1).action
    'improve-the-fit'
    >>> step = next_step(0.01, 0.2, goal=0.1, sizes=(100, 200, 400), errors=(0.8, 0.4, 0.2))
    >>> step.action, step.rows
    ('gather-data', 800)
    >>> next_step(0.01, 0.2, goal=0.1, sizes=(100, 200, 400), errors=(0.2, 0.2, 0.2)).action
    'regularise'
    """
    _check(sizes, errors)
    if validation_error <= goal:
        return NextStep("done", f"The validation error {number(validation_error, 3)} is enough.")
    if train_error > goal:
        return NextStep(
            "improve-the-fit",
            f"The error on the training rows, {number(train_error, 3)}, is above the goal "
            f"{number(goal, 3)}: more rows cannot help. Make the model bigger and tune the "
            "learning rate; if that fails, inspect the quality of the data.",
        )
    gap = f"The gap from {number(train_error, 3)} in training to {number(validation_error, 3)} in "
    if sizes is None or errors is None:
        return NextStep("gather-data", f"{gap}validation calls for more rows or regularisation.")
    exponent = _exponent(sizes, errors)
    needed = _needed(sizes[-1], validation_error, goal, exponent)
    if needed is None:
        return NextStep(
            "regularise",
            f"{gap}validation is wide, but the learning curve has levelled off (the error falls as "
            f"n^-{number(max(exponent, 0.0), 2)}): regularise, or find better features.",
        )
    return NextStep(
        "gather-data",
        f"{gap}validation closes as n^-{number(exponent, 2)}: about {needed:,} rows reach "
        f"{number(goal, 3)}.",
        needed,
    )


def _exponent(sizes: Sequence[int], errors: Sequence[float]) -> float:
    """Return b of the power law error = a n^-b, by least squares on logarithms."""
    slope = np.polyfit(np.log(sizes), np.log(np.maximum(errors, 1e-12)), 1)[0]
    return float(-slope)


def _needed(rows: int, error: float, goal: float, exponent: float) -> int | None:
    if exponent < FLAT or goal <= 0:
        return None
    times = (error / goal) ** (1 / exponent)
    return int(round(rows * times)) if times <= MOST_TIMES else None


def _check(sizes: Sequence[int] | None, errors: Sequence[float] | None) -> None:
    if (sizes is None) != (errors is None):
        raise InvalidData("next_step: `sizes` and `errors` must be given together; got one.")
    if sizes is not None and errors is not None and not len(sizes) == len(errors) >= 2:
        raise InvalidData(
            "next_step: `sizes` and `errors` must have the same length, 2 at least; got "
            f"{len(sizes)} and {len(errors)}."
        )
