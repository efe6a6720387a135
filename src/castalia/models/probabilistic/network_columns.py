"""Columns of a table as a Bayesian network needs them: codes of states, or numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from castalia.data import Dataset
from castalia.errors import InvalidData
from castalia.models.probabilistic.conditional_nodes import GaussianNode, Node, TableNode
from castalia.utils.text import listing, shorten

__all__ = ["column_states", "encoded", "state_code"]

FEW = 12  # different whole numbers that still count as states


def column_states(
    data: Dataset, kinds: str, *, owner: str = "BayesianNetwork"
) -> dict[str, tuple[Any, ...] | None]:
    """Return the states of every discrete column in order, None for continuous ones.

    With ``"auto"``, words, yes/no and a few whole numbers are states, other numbers continuous.
    """
    return {name: _states(_arrow(data, name), name, kinds, owner) for name in data.columns}


def _arrow(data: Dataset, name: str) -> pa.Array:
    return data.select([name]).table().column(0).combine_chunks()


def _states(column: pa.Array, name: str, kinds: str, owner: str) -> tuple[Any, ...] | None:
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    values = [v for v in pc.unique(column).to_pylist() if v is not None]
    number = pa.types.is_floating(column.type) or pa.types.is_integer(column.type)
    if not values:
        raise InvalidData(
            f"{owner}: column `{name}` must hold a value somewhere; it is empty. Drop it."
        )
    whole = number and all(float(v).is_integer() for v in values)
    if kinds == "gaussian" and not number:
        raise InvalidData(
            f"{owner}: with kinds='gaussian', column `{name}` must hold numbers; got "
            f"{shorten(repr(values[0]))}. Use kinds='auto'."
        )
    if kinds == "discrete" and number and not whole:
        raise InvalidData(
            f"{owner}: column `{name}` must hold states; got continuous numbers such as "
            f"{_fraction(values):g}. Cut it into intervals with scikit-learn's KBinsDiscretizer"
            + (", or use kinds='auto'." if owner == "BayesianNetwork" else ".")
        )
    few = whole and len(values) <= min(FEW, len(column) // 5)
    if kinds == "gaussian" or (kinds == "auto" and number and not few):
        return None
    return tuple(
        sorted(int(v) if whole else v for v in values) if number else sorted(values, key=str)
    )


def _fraction(values: Sequence[float]) -> float:
    return next(v for v in values if not float(v).is_integer())


def encoded(
    data: Dataset, nodes: Mapping[str, Node] | Mapping[str, tuple[Any, ...] | None]
) -> tuple[dict[str, np.ndarray], list[str]]:
    """Return the columns that nodes know, and the names of those with states not seen before.

    Such states, like missing values, have the code -1; missing numbers are NaN.
    """
    found, strange = {}, []
    for name in data.columns:
        if name not in nodes:
            continue
        states = _known_states(nodes[name])
        column = _arrow(data, name)
        if states is None:
            found[name] = _numbers(column, name)
            continue
        found[name], unseen = _codes(column, states)
        strange += [name] if unseen else []
    return found, strange


def _known_states(node: Node | tuple[Any, ...] | None) -> tuple[Any, ...] | None:
    return node.states if isinstance(node, TableNode) else node if isinstance(node, tuple) else None


def _numbers(column: pa.Array, name: str) -> np.ndarray:
    try:
        return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=float)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise InvalidData(
            f"BayesianNetwork: column `{name}` is continuous and must hold numbers; got "
            f"{column.type}."
        ) from None


def _codes(column: pa.Array, states: Sequence[Any]) -> tuple[np.ndarray, bool]:
    coded = column.dictionary_encode()
    known = _numbering(states)
    values = coded.dictionary.to_pylist()
    codes = [-1 if _absent(v) else known.get(_key(v), -1) for v in values]
    unseen = any(c < 0 and not _absent(v) for c, v in zip(codes, values, strict=True))
    at = coded.indices.fill_null(len(values)).to_numpy(zero_copy_only=False)
    return np.array([*codes, -1], dtype=np.int64)[at], unseen


def _absent(value: Any) -> bool:
    return value is None or value != value


def _numbering(states: Sequence[Any]) -> dict[str, int]:
    return {_key(state): i for i, state in enumerate(states)}


def _key(value: Any) -> str:
    """Return what states are compared by: 1, 1.0, numpy's 1 and "1" are one state."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def state_code(node: Node, value: Any) -> float:
    """Return the code of a state, or the number of a continuous value, given as evidence."""
    if isinstance(node, GaussianNode):
        if isinstance(value, str | bool) or not np.isfinite(value):
            raise InvalidData(
                f"BayesianNetwork: evidence on `{node.name}`, which is continuous, must be a "
                f"finite number; got {value!r}."
            )
        return float(value)
    known = _numbering(node.states)
    if _key(value) not in known:
        raise InvalidData(
            f"BayesianNetwork: evidence on `{node.name}` must be one of its states, "
            f"{listing(node.states)}; got {value!r}."
        )
    return known[_key(value)]
