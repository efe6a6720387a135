"""Judging decisions by what their mistakes cost.

P = TP / (TP + FP),  R = TP / (TP + FN),  F_b = (1 + b^2) P R / (b^2 P + R).
What is 0/0 is not a number here: a detector that never fires has no precision.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.utils.renamed_arguments import renamed
from castalia.utils.text import listing

__all__ = ["expected_cost", "f_beta", "optimal_threshold", "precision_recall"]


@renamed(prediction="y_pred")
def precision_recall(y_true: Any, y_pred: Any, positive: Any = 1) -> tuple[float, float]:
    """Return precision and recall of one class; nan where there is nothing to divide by.

    Examples
    --------
    >>> precision_recall([1, 0, 1, 0], [1, 1, 1, 0])
    (0.6666666666666666, 1.0)
    >>> precision_recall([1, 0, 0], [0, 0, 0])
    (nan, 0.0)
    """
    true, said = _pair(y_true, y_pred, positive, "precision_recall")
    hits = int(((true == positive) & (said == positive)).sum())
    return _ratio(hits, int((said == positive).sum())), _ratio(hits, int((true == positive).sum()))


def f_beta(precision: float, recall: float, beta: float = 1.0) -> float:
    """Return the F-measure: recall counts ``beta`` times as much as precision.

    Where precision is not defined because nothing was found, the measure is 0: F in counts is
    (1 + b^2) TP / ((1 + b^2) TP + b^2 FN + FP). It is nan only when there was nothing to find.

    Parameters
    ----------
    precision, recall
        As ``precision_recall`` gives them.
    beta
        Weight of recall, above 0; 1 gives the harmonic mean.

    Examples
    --------
    >>> [round(f_beta(0.5, 1.0, beta), 6) for beta in (1, 0.5, 2)]
    [0.666667, 0.555556, 0.833333]
    """
    if not beta > 0:
        raise InvalidParameter(f"f_beta: `beta` must be above 0; got {beta!r}.")
    if np.isnan(recall):
        return float("nan")
    if np.isnan(precision) or precision == recall == 0:
        return 0.0
    return (1 + beta**2) * precision * recall / (beta**2 * precision + recall)


@renamed(prediction="y_pred")
def expected_cost(
    y_true: Any,
    y_pred: Any,
    *,
    false_positive: float = 1.0,
    false_negative: float = 1.0,
    positive: Any = 1,
) -> float:
    """Return the mean cost of the mistakes of a yes/no decision.

    Parameters
    ----------
    y_true, y_pred
        One label per row.
    false_positive, false_negative
        Cost of a false alarm and of a miss.
    positive
        The class to be found.

    Examples
    --------
    >>> expected_cost([0, 0, 1, 1], [1, 0, 0, 1], false_positive=10.0)
    2.75
    """
    _costs(false_positive, false_negative, "expected_cost")
    true, said = _pair(y_true, y_pred, positive, "expected_cost")
    alarms = ((true != positive) & (said == positive)).mean()
    misses = ((true == positive) & (said != positive)).mean()
    return float(false_positive * alarms + false_negative * misses)


def optimal_threshold(false_positive: float, false_negative: float) -> float:
    """Return the probability above which to say yes: c_FP / (c_FP + c_FN).

    With calibrated probabilities no other threshold costs less.

    Examples
    --------
    >>> optimal_threshold(false_positive=9.0, false_negative=1.0)
    0.9
    """
    _costs(false_positive, false_negative, "optimal_threshold")
    return false_positive / (false_positive + false_negative)


def _costs(false_positive: float, false_negative: float, owner: str) -> None:
    costs = (false_positive, false_negative)
    if not all(0 <= cost < np.inf for cost in costs) or not any(costs):
        raise InvalidParameter(
            f"{owner}: costs must be finite and not negative, and one must be above 0; got "
            f"{false_positive!r} and {false_negative!r}."
        )


def _pair(y_true: Any, y_pred: Any, positive: Any, owner: str) -> tuple[np.ndarray, np.ndarray]:
    true, said = np.asarray(y_true), np.asarray(y_pred)
    if true.shape != said.shape or true.ndim != 1 or not len(true):
        raise ShapeMismatch(
            f"{owner}: `y_true` and `y_pred` must have one entry per row, one row or more; got "
            f"shapes {true.shape} and {said.shape}."
        )
    labels = {*true.tolist(), *said.tolist()}
    if positive not in labels and (len(labels) > 1 or any(isinstance(v, str) for v in labels)):
        raise InvalidParameter(
            f"{owner}: `positive` must be one of the labels, "
            f"{listing(sorted(map(repr, labels)), last='or', most=6)}; got {positive!r}."
        )
    return true, said


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")
