"""The test rows a model gets most wrong, with the rows themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.utils.renamed_arguments import renamed

__all__ = ["Mistake", "worst_mistakes"]


@dataclass(frozen=True)
class Mistake:
    """One row the model got wrong.

    Attributes
    ----------
    index
        Position of the row in the test set.
    loss
        How wrong: the row's loss.
    truth, prediction
        What it is and what the model said.
    confidence
        Probability the model gave to its answer, or None.
    row
        The row's values by column name.
    """

    index: int
    loss: float
    truth: Any
    prediction: Any
    confidence: float | None = None
    row: Mapping[str, Any] = field(default_factory=dict)


@renamed(prediction="y_pred")
def worst_mistakes(
    y_true: Any,
    y_pred: Any,
    loss: Any,
    rows: Any = None,
    most: int = 10,
    confidence: Any = None,
) -> list[Mistake]:
    """Return the rows with the largest loss, worst first.

    Rows that were predicted exactly right are no mistakes and are left out; rows whose loss is
    not a number come first.

    Parameters
    ----------
    y_true, y_pred, loss
        One entry per row.
    rows
        The inputs: a data frame, a mapping of columns, a 2-D array or a sequence of mappings.
    most
        How many to return at most.
    confidence
        Probability of the predicted class per row, if known.

    Examples
    --------
    >>> found = worst_mistakes([1, 0, 1], [1, 1, 0], [0.1, 0.7, 2.3], rows={"age": [5, 6, 7]})
    >>> [(m.index, m.truth, m.row) for m in found]
    [(2, 1, {'age': 7}), (1, 0, {'age': 6})]
    """
    if most < 0:
        raise InvalidParameter(f"worst_mistakes: `most` must not be negative; got {most!r}.")
    truth, said, cost = np.asarray(y_true), np.asarray(y_pred), np.asarray(loss, dtype=float)
    if not len(truth) == len(said) == len(cost):
        raise ShapeMismatch(
            f"worst_mistakes: `y_true`, `y_pred` and `loss` must have one entry per row; "
            f"got {len(truth)}, {len(said)} and {len(cost)}."
        )
    order = np.argsort(-np.nan_to_num(cost, nan=np.inf), kind="stable")
    wrong = [int(i) for i in order if _plain(truth[i]) != _plain(said[i])][:most]
    return [
        Mistake(
            index=i,
            loss=float(cost[i]),
            truth=_plain(truth[i]),
            prediction=_plain(said[i]),
            confidence=None if confidence is None else float(confidence[i]),
            row=_row(rows, i),
        )
        for i in wrong
    ]


def _plain(value: Any) -> Any:
    """Turn a numpy scalar or small array into what it holds."""
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value


def _row(rows: Any, i: int) -> dict[str, Any]:
    """Read one row by position from whatever holds the inputs."""
    if rows is None:
        return {}
    if isinstance(rows, Mapping):
        return {str(name): _plain(values[i]) for name, values in rows.items()}
    if hasattr(rows, "iloc"):
        # One cell at a time: a whole row would turn integers beside floats into floats.
        return {str(c): _plain(rows.iloc[i, j]) for j, c in enumerate(rows.columns)}
    if hasattr(rows, "columns") and hasattr(rows, "row"):  # polars
        return {str(k): _plain(v) for k, v in zip(rows.columns, rows.row(i), strict=True)}
    row = rows[i]
    if isinstance(row, Mapping):
        return {str(name): _plain(value) for name, value in row.items()}
    if isinstance(row, Sequence | np.ndarray) and not isinstance(row, str):
        return {f"x{j}": _plain(value) for j, value in enumerate(row)}
    return {"x": _plain(row)}
