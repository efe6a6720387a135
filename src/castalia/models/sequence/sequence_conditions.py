"""The condition of a generated sequence: a class, or numbers, for each of them.

Shapes: n sequences, D numbers that the network reads at every step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from castalia.base import NoTarget, Target
from castalia.base.input_checks import check_target
from castalia.errors import InvalidData, InvalidParameter
from castalia.utils.text import listing

__all__ = ["ConditionCodec", "conditions"]


class ConditionCodec(NoTarget):
    """No y; or the conditions of sequences, of which the codec learns classes or scales."""

    def check(self, est: Any, adapter: Any, X: Any, y: Any) -> np.ndarray:
        """Return the conditions, or zeros."""
        if not est.conditional:
            return super().check(est, adapter, X, y)
        if y is None:
            raise InvalidData(
                f"{type(est).__name__}: y must hold a class, or numbers, for each sequence with "
                "conditional=True; got None. Give them, or set conditional=False."
            )
        return check_target(est, X, y)

    def fit(self, est: Any, adapter: Any, X: Any, y: Any, weight: np.ndarray | None) -> Target:
        """Learn the classes, or mean and deviation of numbers."""
        if est.conditional:
            est.classes_ = None if _numbers(y) else np.unique(y)
            if est.classes_ is None:
                columns = _columns(y)
                spread = columns.std(axis=0)
                est.condition_mean_ = columns.mean(axis=0)
                est.condition_scale_ = np.where(spread > 0, spread, 1.0)
        return super().fit(est, adapter, X, y, weight)

    def encode(self, est: Any, y: Any) -> Target:
        """Return what the network reads, (n, D)."""
        if not est.conditional:
            return super().encode(est, y)
        found = torch.from_numpy(_encoded(est, np.asarray(y)).astype(np.float32))
        return Target(found, found.shape[1])


def conditions(est: Any, y: Any, n: int, what: str) -> np.ndarray | None:
    """Return the conditions of n sequences as the network reads them, (n, D); one may be for all.

    None where the model is not conditional.
    """
    if not est.conditional:
        if y is not None and what == "sample":
            raise InvalidParameter(
                f"{type(est).__name__}.{what}: `y` must be None without conditional=True; got "
                f"{y!r}."
            )
        return None
    if y is None:
        raise InvalidData(
            f"{type(est).__name__}.{what}: `y` must be a condition, or one for each sequence, of a "
            "conditional model; got None."
        )
    given = np.asarray(y)
    alone = given.ndim == 0 or (est.classes_ is None and given.shape == est.condition_mean_.shape)
    found = _encoded(est, given[None] if alone else given)
    if len(found) not in (1, n):
        raise InvalidData(
            f"{type(est).__name__}.{what}: `y` must have 1 or {n} conditions; got {len(found)}."
        )
    return np.broadcast_to(found, (n, found.shape[1]))


def _encoded(est: Any, y: np.ndarray) -> np.ndarray:
    """Return classes as ones among zeros, numbers in units of their deviation, (n, D)."""
    if est.classes_ is None:
        columns = _columns(y)
        wide = len(est.condition_mean_)
        if columns.shape[1] != wide or not np.isfinite(columns).all():
            raise InvalidData(
                f"{type(est).__name__}: a condition must be {wide} finite numbers, as in fit; got "
                f"{columns[0].tolist()}."
            )
        return (columns - est.condition_mean_) / est.condition_scale_
    strange = ~np.isin(y, est.classes_)
    if strange.any():
        raise InvalidData(
            f"{type(est).__name__}: y must be of the classes of fit, "
            f"{listing(est.classes_.tolist(), 'and', 10)}; got {y[strange].tolist()[0]!r}."
        )
    found: np.ndarray = (y[:, None] == est.classes_).astype(np.float64)
    return found


def _numbers(y: np.ndarray) -> bool:
    """Whether conditions are numbers, and not classes: of a float type, or in columns."""
    return y.ndim == 2 or np.issubdtype(y.dtype, np.floating)


def _columns(y: np.ndarray) -> np.ndarray:
    try:
        found = y.astype(np.float64)
    except ValueError as error:
        raise InvalidData(f"conditions in columns must be numbers; {error}.") from error
    return found[:, None] if found.ndim == 1 else found
