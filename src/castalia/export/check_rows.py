"""Rows that an exported file is checked on: those that are given, or the run's own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from castalia.method.fit_result import RESULT, FitResult
from castalia.method.predictions import read_new_rows

__all__ = ["check_rows"]

MOST = 256  # rows


def check_rows(
    folder: str | os.PathLike[str], model: Any, data: str | None = None
) -> tuple[Any, str]:
    """Return some rows as a model takes them, and where they are from; None where none are there.

    Parameters
    ----------
    folder
        Of the run or the model.
    model
        The loaded model.
    data
        A file or folder of rows; None: what the run was trained on, where that is still there.
    """
    source = data if data is not None else _own(Path(folder))
    if source is None:
        return None, ""
    X = read_new_rows(folder, model, source).X
    some = np.arange(min(MOST, len(X)))
    return (X.take(some) if hasattr(X, "take") else X[: len(some)]), source


def _own(folder: Path) -> str | None:
    """Return the file that a run was trained on, where it is still there."""
    for place in (folder, folder.parent, folder.parent.parent):
        if (place / RESULT).is_file():
            plan = FitResult.load(place).summary.get("plan") or {}
            data = plan.get("data")
            return data if isinstance(data, str) and os.path.exists(data) else None
    return None
