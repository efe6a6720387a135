"""Nested states, such as an optimizer's, as named tensors and a tree that JSON can hold."""

from __future__ import annotations

import math
import struct
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from torch import Tensor

from castalia.errors import CastaliaError, CheckpointMismatch, DamagedFile, InvalidParameter
from castalia.utils.text import shorten

__all__ = ["first_line", "flatten", "unflatten"]

Encode = Callable[[Any, str], Any]
Decode = Callable[[Any], Any]


def first_line(error: BaseException) -> str:
    """Name an error in a few words of one line."""
    return f"{type(error).__name__}: {shorten(str(error).partition(chr(10))[0], 160)}"


def flatten(
    tree: Any, *, other: Callable[[Any, str, Encode], Any] | None = None
) -> tuple[dict[str, Tensor], Any]:
    """Split a nested structure into named tensors and a tree that JSON can hold.

    Dicts (with any plain keys), lists, tuples, None, bool, int, float, str and tensors come back
    exactly; ordered dicts come back as dicts and NumPy scalars as Python's.

    Returns
    -------
    tuple
        Tensors named by their path, and the JSON tree that refers to them.

    Examples
    --------
    >>> import torch
    >>> tensors, tree = flatten({"state": {0: (torch.zeros(2), float("inf"))}})
    >>> list(tensors)
    ['state.0.0']
    >>> unflatten(tensors, tree)
    {'state': {0: (tensor([0., 0.]), inf)}}
    """
    tensors: dict[str, Tensor] = {}

    def encode(value: Any, path: str) -> Any:
        if other is not None and (node := other(value, path, encode)) is not None:
            return node
        return _encode(value, path, encode, tensors)

    try:
        return tensors, encode(tree, "")
    except RecursionError as error:
        raise InvalidParameter(
            "flatten: the structure must not contain itself; got one that does, or one too deep."
        ) from error


def _encode(value: Any, path: str, encode: Encode, tensors: dict[str, Tensor]) -> Any:
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        return value if -(2**63) <= value < 2**63 else {"$": "int", "hex": hex(value)}
    if kind is float:
        return (
            value if math.isfinite(value) else {"$": "float", "hex": struct.pack(">d", value).hex()}
        )
    if kind is list:
        return [encode(item, _below(path, i)) for i, item in enumerate(value)]
    if kind is tuple:
        return {"$": "tuple", "items": [encode(v, _below(path, i)) for i, v in enumerate(value)]}
    if kind is dict or kind is OrderedDict:
        return _encode_dict(value, path, encode)
    if isinstance(value, Tensor):
        return {"$": "tensor", "name": _store(value, path, tensors)}
    if isinstance(value, np.generic) and isinstance(value.item(), bool | int | float | str):
        return _encode(value.item(), path, encode, tensors)
    raise InvalidParameter(
        f"castalia: `{path or 'value'}` must be made of plain values, arrays or registered records "
        f"to be saved; got {kind.__module__}.{kind.__qualname__}. Register its class with "
        "`castalia.base.saved_values.register`, or leave it out."
    )


def _below(path: str, key: object) -> str:
    return f"{path}.{key}" if path else str(key)


def _encode_dict(value: Mapping[Any, Any], path: str, encode: Encode) -> Any:
    if all(type(key) is str for key in value) and "$" not in value:
        return {key: encode(item, _below(path, key)) for key, item in value.items()}
    items = [[encode(k, _below(path, "key")), encode(v, _below(path, k))] for k, v in value.items()]
    return {"$": "dict", "items": items}


def _store(tensor: Tensor, path: str, tensors: dict[str, Tensor]) -> str:
    """Keep a tensor under its path; paths that read alike get a number."""
    name, count = path or "tensor", 1
    while name in tensors:
        count += 1
        name = f"{path or 'tensor'}~{count}"
    tensors[name] = tensor
    return name


def unflatten(
    tensors: Mapping[str, Tensor],
    tree: Any,
    *,
    other: Callable[[dict[str, Any], Decode], Any] | None = None,
) -> Any:
    """Put back together what ``flatten`` split.

    Raises
    ------
    DamagedFile
        When the tree is not one that ``flatten`` makes, or a tensor is missing.
    CheckpointMismatch
        When the tree holds a kind of value this version does not know.
    """
    tensors = dict(tensors)  # each is referred to once, so that no file grows by repeating one

    def decode(node: Any) -> Any:
        if isinstance(node, list):
            return [decode(item) for item in node]
        if not isinstance(node, dict):
            return node
        if "$" not in node:
            return {key: decode(item) for key, item in node.items()}
        if node["$"] in _DECODERS:
            return _DECODERS[node["$"]](node, decode, tensors)
        if other is not None:
            return other(node, decode)
        raise CheckpointMismatch(
            f"castalia: the file holds an unknown kind of value, {node['$']!r}."
        )

    try:
        return decode(tree)
    except CastaliaError:
        raise
    except Exception as error:  # whatever nonsense in a file leads to, the reader gets one sentence
        raise DamagedFile(
            f"castalia: the file holds values that make no sense ({first_line(error)})."
        ) from error


def _tensor(node: dict[str, Any], decode: Decode, tensors: dict[str, Tensor]) -> Tensor:
    name = node["name"]
    if name not in tensors:
        raise DamagedFile(
            f"castalia: the file refers to the tensor {name!r}, which is missing from it, or was "
            "referred to before."
        )
    return tensors.pop(name)


_DECODERS: dict[Any, Callable[[dict[str, Any], Decode, dict[str, Tensor]], Any]] = {
    "int": lambda node, decode, tensors: int(node["hex"], 16),
    "float": lambda node, decode, tensors: struct.unpack(">d", bytes.fromhex(node["hex"]))[0],
    "tuple": lambda node, decode, tensors: tuple(decode(item) for item in node["items"]),
    "dict": lambda node, decode, tensors: {decode(k): decode(v) for k, v in node["items"]},
    "tensor": _tensor,
}
