"""The task, inferred from the target: classification or regression, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from castalia.data import Dataset
from castalia.errors import InvalidData
from castalia.utils.text import plural, shorten

__all__ = ["MOST_CODES", "Task", "class_task", "find_task"]

MOST_CODES = 10  # more distinct whole numbers than this are taken as quantities
ROWS_A_CODE = 5  # fewer rows for each distinct number than this, and it is a quantity


@dataclass(frozen=True)
class Task:
    """What is to be predicted.

    Attributes
    ----------
    kind
        ``"classification"`` or ``"regression"``.
    why
        The reason for taking it so.
    y
        The target of each row, (n,).
    classes
        The classes in order; empty for a regression.
    unit
        What one example is called.
    scorer
        The measure that decides; None: the usual one.
    """

    kind: str
    why: str
    y: np.ndarray
    classes: np.ndarray
    unit: str = "row"
    scorer: str | None = None

    @property
    def codes(self) -> np.ndarray:
        """Class numbers, or the numbers themselves."""
        return np.searchsorted(self.classes, self.y) if len(self.classes) else self.y

    @property
    def counts(self) -> dict[Any, int]:
        """Rows of each class."""
        if not len(self.classes):
            return {}
        found = np.bincount(self.codes, minlength=len(self.classes))
        return {str(label): int(n) for label, n in zip(self.classes.tolist(), found, strict=True)}


def find_task(data: Dataset, asked: str | None = None) -> Task:
    """Infer the task from the target of a table.

    Examples
    --------
    >>> from castalia.data import datasets
    >>> task = find_task(datasets.load("penguins").with_target("species"))
    >>> task.kind, task.why
    ('classification', '`species` holds words')
    """
    name, y = str(data.target), data.labels()
    if y.dtype.kind == "M":
        raise InvalidData(
            f"fit: target `{name}` must hold classes or numbers; got dates. Turn it into a "
            "number, such as days."
        )
    y, distinct = _distinct(name, y, "row")
    kind, why = (asked, "it was asked for") if asked else _guess(name, y, distinct)
    if kind == "regression":
        return Task(kind, why, _numbers(name, y), np.array([]))
    return _classes(name, why, y, "row")


def class_task(name: str, y: np.ndarray, why: str, unit: str) -> Task:
    """Return the task of a classification.

    Examples
    --------
    >>> class_task("class", np.array(["cat", "dog", "cat"]), "of folders", "image").counts
    {'cat': 2, 'dog': 1}
    """
    return _classes(name, why, _distinct(name, y, unit)[0], unit)


def _distinct(name: str, y: np.ndarray, unit: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the target, objects as words, and its distinct values: two at least."""
    y = np.array([str(v) for v in y]) if y.dtype == object else y
    distinct = np.unique(y)
    if len(distinct) < 2:
        raise InvalidData(
            f"fit: target `{name}` must have two classes or values at least; all "
            f"{plural(len(y), unit)} hold {distinct.tolist()[0]!r}, so there is nothing to "
            "predict."
        )
    return y, distinct


def _guess(name: str, y: np.ndarray, distinct: np.ndarray) -> tuple[str, str]:
    if y.dtype.kind == "U":
        return "classification", f"`{name}` holds words"
    if y.dtype.kind == "b":
        return "classification", f"`{name}` holds true and false"
    if not np.array_equal(distinct, np.round(distinct)):
        return "regression", f"`{name}` holds numbers with fractions"
    many = f"{len(distinct):,} different whole numbers"
    if len(distinct) == 2:
        return "classification", f"`{name}` holds only two values"
    if len(distinct) <= min(MOST_CODES, len(y) // ROWS_A_CODE):
        return (
            "classification",
            f"`{name}` holds only {many}; --task regression if they are quantities",
        )
    return "regression", f"`{name}` holds {many}"


def _numbers(name: str, y: np.ndarray) -> np.ndarray:
    if y.dtype.kind == "U":
        raise InvalidData(
            f"fit: target `{name}` must hold numbers for a regression; got "
            f"{shorten(repr(str(y[0])), 40)}. "
            "Use --task classification for words."
        )
    return y.astype(np.float64)


def _classes(name: str, why: str, y: np.ndarray, unit: str) -> Task:
    if y.dtype.kind == "f" and np.array_equal(y, np.round(y)):
        y = y.astype(np.int64)
    if y.dtype.kind == "f":
        raise InvalidData(
            f"fit: target `{name}` must hold words or whole numbers for a classification; got "
            f"{y[0]!r}. "
            "Use --task regression for quantities."
        )
    classes, counts = np.unique(y, return_counts=True)
    if counts.max() == 1:
        raise InvalidData(
            f"fit: target `{name}` must have classes of several {unit}s; each of its "
            f"{len(classes):,} values occurs "
            "once, like an identifier. Choose another target."
        )
    return Task("classification", why, y, classes, unit)
