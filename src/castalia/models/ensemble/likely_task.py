"""Whether a target holds classes or quantities, as far as its values can tell."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.utils.multiclass import type_of_target

__all__ = ["TASKS", "likely_task"]

TASKS = ("classification", "regression")
FEW = 10  # distinct whole numbers that are taken as classes, whatever they are stored as
ROWS_A_CLASS = 5  # more distinct ones are classes only where each has as many rows


def likely_task(y: np.ndarray) -> str:
    """Return the task of a target, by scikit-learn's ``type_of_target``.

    It calls every whole number a class; here more than ten of them are so only where they are
    stored as whole numbers and have five rows each on average.

    Examples
    --------
    >>> likely_task(np.array(["a", "b", "a"])), likely_task(np.array([0.5, 1.0]))
    ('classification', 'regression')
    >>> likely_task(np.arange(100.0))
    'regression'
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that there are many classes
        kind = type_of_target(y)
    if kind.startswith("continuous") or np.ndim(y) == 2 and np.shape(y)[1] > 1:
        return "regression"
    if kind != "multiclass" or y.dtype.kind not in "iuf":
        return "classification"
    distinct = len(np.unique(y))
    many = y.dtype.kind != "f" and len(y) >= ROWS_A_CLASS * distinct
    return "classification" if distinct <= FEW or many else "regression"
