"""CST302 and CST304: a loss that does not suit the task, and shapes that broadcast."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from castalia.diagnose.finding_record import Evidence, Finding, finding
from castalia.diagnose.rules.case import Case
from castalia.diagnose.rules.case_objective import BINARY_LOSSES, REGRESSIONS
from castalia.diagnose.thresholds import limit
from castalia.utils.text import number

__all__ = ["broadcasts", "wrong_loss"]


def broadcasts(case: Case) -> Iterator[Finding]:
    """Predictions and targets that broadcast against each other."""
    heads = [look.head for look in case.looks if look.head is not None]
    found = next((h for h in heads if h.broadcast and _blown_up(h.broadcast)), None)
    if found is None or found.broadcast is None:
        return
    before, after = found.broadcast
    yield finding(
        "CST304",
        "error",
        0.97,
        f"Outputs of shape {before} were broadcast to {after}: every prediction is compared with "
        "every target.",
        "Give both one shape: outputs.squeeze(-1) or targets.unsqueeze(-1).",
        Evidence("numbers compared per row", np.prod(after) / max(before[0], 1), 1.0),
        where=found.layer,
    )


def _blown_up(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> bool:
    """Whether the batch was broadcast against itself."""
    before, after = shapes
    if not before or before[0] < 2:
        return False
    return bool(
        np.prod(after) >= before[0] * np.prod(before)
        and after.count(before[0]) > before.count(before[0])
    )


def wrong_loss(case: Case) -> Iterator[Finding]:
    """Squared error for classes, binary cross-entropy for exclusive ones, a loss with a sign."""
    head = case.head
    if case.adversarial:
        return
    if head.negated and head.loss != "unknown" and case.final < case.initial <= 0:
        yield _wrong(
            case, f"The loss is minus {head.loss}: it is maximised.", "Remove the minus sign.", 0.9
        )
    elif head.loss in REGRESSIONS:
        yield from _classes_by_regression(case)
    elif head.loss in BINARY_LOSSES:
        yield from _exclusive(case)
    elif head.loss == "soft_cross_entropy":
        yield from _not_exclusive(case)


def _classes_by_regression(case: Case) -> Iterator[Finding]:
    y = case.targets
    if y is None or len(y) < 30 or case.record.task in ("regression", "vae", "seq"):
        return
    if _reconstructs(case):
        return
    if y.ndim == 2 and y.shape[1] > 1:
        if _class_numbers(y):
            yield _wrong(
                case,
                f"The class number of a row is the target of each of its {y.shape[1]} outputs, "
                f"fitted by {case.head.loss}.",
                "Use cross_entropy with class numbers.",
                0.95,
            )
        elif np.isin(y, (0, 1)).all() and np.allclose(y.sum(axis=1), 1) and y.shape[1] <= 200:
            yield _wrong(
                case,
                f"One-hot classes ({y.shape[1]}) are fitted by {case.head.loss}.",
                "Use cross_entropy with class numbers.",
                0.92,
            )
        return
    values = np.unique(y)
    whole = np.allclose(values, np.round(values))
    if not whole or len(values) > 12 or len(values) < 2 or len(y) < 5 * len(values):
        return
    if set(values.tolist()) <= {0.0, 1.0} or set(values.tolist()) <= {-1.0, 1.0}:
        cure = "Use BCEWithLogitsLoss on one logit."
        yield _wrong(case, f"Two classes are fitted by {case.head.loss}.", cure, 0.9)
    elif (
        values.min() >= 0
        and np.array_equal(values, np.arange(len(values)) + values.min())
        and values.min() in (0, 1)
    ):
        yield _wrong(
            case,
            f"Targets are the whole numbers {int(values.min())} to "
            f"{int(values.max())}, which look like classes, fitted by {case.head.loss}.",
            f"If they are classes, use cross_entropy with {len(values)} outputs.",
            0.8,
        )


def _class_numbers(y: np.ndarray) -> bool:
    """Whether all columns are one and the same whole number, below the number of columns.

    One number below 0 may mark what is not to count.

    >>> _class_numbers(np.array([[2.0, 2.0, 2.0], [0.0, 0.0, 0.0], [-1.0, -1.0, -1.0]]))
    True
    """
    number = y[:, 0]
    whole = np.array_equal(number, np.round(number)) and len(np.unique(number[number < 0])) <= 1
    return bool(whole and 0 < number.max() < y.shape[1] and (y == number[:, None]).all())


def _reconstructs(case: Case) -> bool:
    """Whether targets are the inputs themselves, as in an autoencoder."""
    outputs, inputs = math.prod(case.head.outputs[1:]), math.prod(case.record.input_shape)
    return len(case.head.outputs) > 1 and outputs == inputs > 8


def _not_exclusive(case: Case) -> Iterator[Finding]:
    y = case.targets
    if y is None or y.ndim != 2 or len(y) < 30 or not np.isin(y, (0, 1)).all():
        return
    several = float((y.sum(axis=1) > 1).mean())
    if several > limit("labels.several"):
        yield _wrong(
            case,
            f"{number(100 * several, 2)} % of the rows have several labels, but a softmax makes "
            "them compete.",
            "Use BCEWithLogitsLoss, one logit a label.",
            0.92,
        )


def _exclusive(case: Case) -> Iterator[Finding]:
    y = case.targets
    if y is not None and y.dtype.kind == "f" and len(np.unique(y)) > 2:
        slack = limit("rounding.equal")
        outside = float(((y < -slack) | (y > 1 + slack)).mean())
        if outside > limit("targets.outside"):
            yield _wrong(
                case,
                f"A binary cross-entropy is given targets outside 0 to 1 "
                f"({number(100 * outside, 2)} % of them).",
                "Use mse_loss for numbers, cross_entropy for several classes.",
                0.93,
            )
            return
    if (
        y is None
        or y.ndim != 2
        or y.shape[1] < 3
        or len(y) < 30
        or case.record.task == "multilabel"
    ):
        return
    one_hot = np.isin(y, (0, 1)).all() and np.allclose(y.sum(axis=1), 1)
    if one_hot and not _reconstructs(case):
        yield _wrong(
            case,
            f"Each row has exactly one of {y.shape[1]} classes, fitted by a binary "
            "cross-entropy per class.",
            "Use cross_entropy with class numbers.",
            0.88,
        )


def _wrong(case: Case, summary: str, cure: str, sure: float) -> Finding:
    return finding(
        "CST302",
        "warning",
        sure,
        summary,
        cure,
        Evidence("loss at the end", case.final),
        where=case.head.layer,
    )
