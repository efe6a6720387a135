"""The way back from a table encoder's matrix to a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["decode_table"]

DAY = 86_400_000_000  # microseconds


def decode_table(
    matrix: NDArray[Any], state: Mapping[str, Any], decimals: Sequence[int] = ()
) -> NDArray[np.float64] | pa.Table:
    """Return the table that an encoder made a matrix of, or would have made it of.

    Parameters
    ----------
    matrix
        Standardised numbers, indicators of missing numbers, codes of categories, (rows, inputs).
    state
        That of the ``TableEncoder``.
    decimals
        How many decimals numbers have, -1: as many as there are; so for all where empty.

    Returns
    -------
    array or pyarrow.Table
        An array where the encoder learnt from one, otherwise the columns that it uses.

    Examples
    --------
    >>> from castalia.data import TableEncoder
    >>> X = np.array([[1.0, 5.0], [np.nan, 7.0]])
    >>> encoder = TableEncoder().fit(X)
    >>> decode_table(encoder.encode(X), encoder.state()).tolist()
    [[1.0, 5.0], [nan, 7.0]]
    """
    names, flagged = state["numeric"], state["flagged"]
    numbers = matrix[:, : len(names)].astype(np.float64) * state["scale"] + state["mean"]
    for place, column in enumerate(flagged, start=len(names)):
        numbers[matrix[:, place] > 0.5, column] = np.nan
    for column, digits in enumerate(decimals):
        if digits >= 0:
            numbers[:, column] = np.round(numbers[:, column], digits)
    if not state["named"] and not state["words"]:
        found = np.full((len(matrix), len(state["columns"])), np.nan)
        found[:, [state["columns"].index(name) for name in names]] = numbers
        return found
    columns = {
        name: _typed(numbers[:, i], kind, bool(decimals) and decimals[i] == 0)
        for i, (name, kind) in enumerate(zip(names, state["kinds"], strict=True))
    }
    for place, (name, words) in enumerate(state["words"], start=len(names) + len(flagged)):
        columns[name] = _worded(matrix[:, place], words)
    return pa.table({name: columns[name] for name in state["columns"] if name in columns})


def _typed(values: NDArray[np.float64], kind: str, whole: bool) -> pa.Array:
    """Return numbers as a column of their kind; NaN as missing."""
    absent = np.isnan(values)
    if kind == "boolean":
        return pa.array(values > 0.5, mask=absent)
    filled = np.where(absent, 0.0, values)
    if kind == "date":
        return pa.array((filled * DAY).astype(np.int64), mask=absent).cast(pa.timestamp("us"))
    return pa.array(filled.astype(np.int64) if whole else filled, mask=absent)


def _worded(codes: NDArray[Any], words: Sequence[str]) -> pa.Array:
    """Return codes as words; code 0 as missing."""
    places = codes.astype(np.int64)
    known = pa.array([None, *words], pa.string())
    return known.take(pa.array(np.clip(places, 0, len(words))))
