"""Any value as plain Python, and plain Python as strict JSON and back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from enum import Enum
from typing import Any

import numpy as np

from castalia.utils.regular_files import parse_json

__all__ = ["from_text", "plain", "to_text"]

# JSON has no such numbers; a tagged string keeps the file readable by every parser.
_TAG = "$number"
_ODD = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def plain(value: Any) -> Any:
    """Turn numpy values, tuples, sets, paths, dates … into lists, dicts and JSON scalars.

    Examples
    --------
    >>> plain({1: (np.float32(0.5), np.arange(2))})
    {'1': [0.5, [0, 1]]}
    """
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist()) if value.dtype.kind in "biufOU" else plain(value.astype(str))
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(plain(k)): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, set | frozenset):
        return sorted((plain(v) for v in value), key=str)
    if hasattr(value, "tolist"):  # torch tensors, pandas columns
        return plain(value.tolist())
    return str(value)


def to_text(value: Any, indent: int | None = None) -> str:
    """Write plain data as strict JSON."""
    return json.dumps(_tagged(value), indent=indent, ensure_ascii=False, allow_nan=False)


def from_text(text: str | bytes) -> Any:
    """Read what `to_text` wrote."""
    return parse_json(text, _untagged)


def _tagged(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return {_TAG: str(value)}
    if isinstance(value, dict):
        return {k: _tagged(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_tagged(v) for v in value]
    return value


def _untagged(value: dict[str, Any]) -> Any:
    if len(value) == 1 and value.get(_TAG) in _ODD:
        return _ODD[value[_TAG]]
    return value
