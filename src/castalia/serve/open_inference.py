"""Tensors of the Open Inference Protocol (KServe V2), JSON or binary, as rows and back."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from castalia.errors import InvalidData

__all__ = ["DATATYPES", "described", "infer_outputs", "infer_rows"]

DATATYPES = {
    "BOOL": "bool", "UINT8": "u1", "UINT16": "u2", "UINT32": "u4", "UINT64": "u8", "INT8": "i1",
    "INT16": "i2", "INT32": "i4", "INT64": "i8", "FP16": "f2", "FP32": "f4", "FP64": "f8",
}  # fmt: skip
_OF_KIND = {"categorical": "BYTES", "date": "BYTES", "any": "BYTES", "text": "BYTES"}


def described(name: str, loaded: Any) -> dict[str, Any]:
    """Return the metadata of a model."""
    predictor = loaded.predictor
    columns: Mapping[str, str] = {} if predictor is None else predictor.columns
    entry = getattr(predictor, "entry", None)
    whole = entry is not None and entry.kind not in ("table", "text")
    shape = [-1, *(entry.ports[0].shape if whole and entry is not None else ())]
    inputs = [
        {"name": column, "datatype": _OF_KIND.get(kind, "FP64"), "shape": shape}
        for column, kind in columns.items()
    ]
    outputs = []
    if predictor is not None:
        found = predictor.answer(predictor.warm_rows(1))
        outputs = [
            {"name": key, "datatype": _datatype(v), "shape": [-1, *v.shape[1:]]}
            for key, v in found.items()
        ]
    return {
        "name": name,
        "versions": [loaded.version],
        "platform": f"castalia_{loaded.system}",
        "inputs": inputs,
        "outputs": outputs,
        "parameters": {"classes": None if predictor is None else predictor.classes},
    }


def infer_rows(body: Any, binary: bytes, columns: Mapping[str, str], rows_are: str) -> list[Any]:
    """Return the rows of an inference request.

    Parameters
    ----------
    body
        The JSON of the request.
    binary
        What follows it, for inputs that say ``binary_data_size``.
    columns
        Names of the model's inputs.
    rows_are
        ``"table"`` where each input is a column, otherwise one input holds whole rows.
    """
    inputs = body.get("inputs") if isinstance(body, dict) else None
    if not isinstance(inputs, list) or not inputs:
        raise InvalidData("serve: the body must have `inputs`, a list of tensors.")
    found: dict[str, np.ndarray] = {}
    for each in inputs:
        name = each.get("name") if isinstance(each, dict) else None
        if not isinstance(name, str):
            raise InvalidData("serve: every input must have a name.")
        size = (each.get("parameters") or {}).get("binary_data_size")
        part, binary = (None, binary) if size is None else (binary[:size], binary[size:])
        found[name] = _tensor(name, each, part)
    if rows_are != "table":
        name = next(iter(columns))
        if name not in found:
            raise InvalidData(f"serve: `inputs` must have the tensor `{name}`.")
        return list(found[name].tolist())
    lengths = {name: len(values) for name, values in found.items()}
    if len(set(lengths.values())) > 1:
        raise InvalidData(f"serve: all inputs must have as many rows; got {lengths}.")
    lists = {name: values.reshape(-1).tolist() for name, values in found.items()}
    wrong = [name for name in lists if len(lists[name]) != lengths[name]]
    if wrong:
        raise InvalidData(f"serve: column `{wrong[0]}` must have one value a row.")
    plain = {name: [None if v != v else v for v in values] for name, values in lists.items()}
    return [dict(zip(plain, row, strict=True)) for row in zip(*plain.values(), strict=True)]


def _tensor(name: str, each: Mapping[str, Any], part: bytes | None) -> np.ndarray:
    shape: Any = each.get("shape")
    kind: Any = each.get("datatype")
    whole = isinstance(shape, list) and shape and all(type(n) is int and n >= 0 for n in shape)
    if not whole or (kind != "BYTES" and kind not in DATATYPES):
        raise InvalidData(
            f"serve: input `{name}` must have a shape and a datatype of the protocol; got "
            f"{shape!r} and {kind!r}."
        )
    try:
        if kind == "BYTES":
            values = _words(part) if part is not None else _flat(each["data"])
            found = np.array([_decoded(v) for v in values], dtype=object)
        elif part is not None:
            found = np.frombuffer(part, DATATYPES[str(kind)])
        else:
            found = np.array(_flat(each["data"]), dtype=np.float64)
        return found.reshape(shape)
    except (KeyError, TypeError, ValueError, OverflowError, struct.error, UnicodeDecodeError):
        raise InvalidData(
            f"serve: the data of input `{name}` must be {prod(shape):,} values of {kind}, as its "
            "shape says."
        ) from None


def _flat(data: Any) -> list[Any]:
    while isinstance(data, list) and data and isinstance(data[0], list):
        data = [value for part in data for value in part]
    if not isinstance(data, list):
        raise TypeError
    return data


def _words(part: bytes) -> list[bytes]:
    """Return texts that each stand behind their length of four bytes."""
    found, start = [], 0
    while start < len(part):
        (size,) = struct.unpack_from("<I", part, start)
        found.append(part[start + 4 : start + 4 + size])
        start += 4 + size
    return found


def _decoded(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value


def infer_outputs(
    found: Mapping[str, np.ndarray], wanted: Sequence[Mapping[str, Any]] | None
) -> list[dict[str, Any]]:
    """Return the answers as tensors of the protocol, those that were asked for."""
    names = [each.get("name") for each in wanted or ()] or list(found)
    unknown = [name for name in names if name not in found]
    if unknown:
        raise InvalidData(
            f"serve: the model has no output `{unknown[0]}`; it has {', '.join(found)}."
        )
    return [_output(str(name), found[str(name)]) for name in names]


def _output(name: str, values: np.ndarray) -> dict[str, Any]:
    kind = _datatype(values)
    flat = values.reshape(-1).tolist()
    data = [str(v) for v in flat] if kind == "BYTES" else flat
    return {"name": name, "datatype": kind, "shape": list(values.shape), "data": data}


def _datatype(values: np.ndarray) -> str:
    plain = values.dtype.str.lstrip("<>|=").replace("b1", "bool")
    return next((name for name, code in DATATYPES.items() if code == plain), "BYTES")
