"""Rows of many tasks as an array with a row for each task."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from castalia.errors import InvalidData

__all__ = ["task_rows"]


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
