"""Rows of many tasks: one after the other with their groups, or side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from castalia.base.input_checks import n_rows, same_rows
from castalia.errors import InvalidData
from castalia.models.strategies.training_changes import require_rows
from castalia.objectives import Augmented, Objective

__all__ = ["as_rows", "class_rows", "flat_tasks", "own_loss", "task_rows", "viewed"]


def flat_tasks(owner: str, X: Any, y: Any, groups: Any) -> tuple[Any, Any, Any]:
    """Return rows, targets and the task of each; tasks side by side are put one after the other.

    Examples
    --------
    >>> X, y, groups = flat_tasks("MAML", np.zeros((2, 3, 1)), np.zeros((2, 3)), None)
    >>> X.shape, y.shape, groups
    ((6, 1), (6,), array([0, 0, 0, 1, 1, 1]))
    """
    if groups is not None or y is None or np.ndim(y) < 2 or np.ndim(X) < 3:
        return X, y, groups
    X, y = np.asarray(X), np.asarray(y)
    same_rows(owner, X, y)
    if X.shape[1] != y.shape[1]:
        raise InvalidData(
            f"{owner}: X and y must have as many points of each task; got {X.shape[1]} and "
            f"{y.shape[1]}."
        )
    groups = np.repeat(np.arange(len(X)), X.shape[1])
    return X.reshape(-1, *X.shape[2:]), y.reshape(-1, *y.shape[2:]), groups


def as_rows(X: Any) -> tuple[Any, tuple[int, ...]]:
    """Return rows of tasks one after the other, and the shape that answers to them have."""
    if np.ndim(X) != 3:
        return X, (n_rows(X),)
    X = np.asarray(X)
    return X.reshape(-1, X.shape[2]), X.shape[:2]


def task_rows(owner: str, x: Tensor, y: Tensor, groups: Any, least: int) -> tuple[Tensor, Tensor]:
    """Return the rows of each task side by side, (T, n, …), n those of the smallest task.

    Parameters
    ----------
    owner
        Whose data it is, for messages.
    x, y
        Inputs and targets, (N, …).
    groups
        The task of each row, (N,).
    least
        Rows that every task must have.

    Examples
    --------
    >>> x = torch.arange(4.0)[:, None]
    >>> task_rows("MAML", x, x, [0, 1, 1, 0], 2)[0].squeeze(2)
    tensor([[0., 3.],
            [1., 2.]])
    """
    found = None if groups is None else np.asarray(groups)
    if found is None or found.shape != (len(x),):
        raise InvalidData(
            f"{owner}: `groups` must give the task of each of the {len(x):,} rows; got "
            f"{None if found is None else found.shape}."
        )
    parts = [np.flatnonzero(found == name) for name in np.unique(found)]
    n = min(map(len, parts))
    if n < least or len(parts) < 2:
        raise InvalidData(
            f"{owner}: there must be two tasks or more, with {least} rows or more each; got "
            f"{len(parts)} with as few as {n}."
        )
    index = torch.from_numpy(np.stack([part[:n] for part in parts]))
    return x[index], y[index]


def class_rows(owner: str, x: Tensor, y: Any, ways: int, least: int) -> Tensor:
    """Return the rows of each class side by side, (K, n, …), n those of the smallest class.

    Parameters
    ----------
    owner
        Whose data it is, for messages.
    x, y
        Inputs (N, …) and labels (N,).
    ways, least
        Classes that there must be, and rows of each.

    Examples
    --------
    >>> class_rows("MAML", torch.arange(4.0), ["a", "b", "b", "a"], 2, 2)
    tensor([[0., 3.],
            [1., 2.]])
    """
    classes, codes = np.unique(y, return_inverse=True)
    parts = [np.flatnonzero(codes == k) for k in range(len(classes))]
    n = min(map(len, parts))
    if n < least or len(parts) < ways:
        raise InvalidData(
            f"{owner}: there must be {ways} classes or more, with {least} rows or more each; got "
            f"{len(parts)} with as few as {n}."
        )
    return x[torch.from_numpy(np.stack([part[:n] for part in parts]))]


def own_loss(owner: str, member: Any) -> Any:
    """Return what an estimator minimises for each row, without its random views."""
    own = member._objective(member.spec_)
    return require_rows(owner, own.objective if isinstance(own, Augmented) else own)


def viewed(member: Any, objective: Objective) -> Objective:
    """Return an objective of rows side by side, (K, n, …), that sees them through ``augment``."""
    augment = getattr(member, "augment", None)
    if not callable(augment):  # None, or a recipe for classes that all are trained on
        return objective

    def views(x: Tensor, y: Any) -> tuple[Tensor, Any]:
        return augment(x.flatten(0, 1), None)[0].unflatten(0, x.shape[:2]), y

    return Augmented(objective, views)
