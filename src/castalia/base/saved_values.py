"""Fitted values to plain JSON and tensors, and back to the bit, without ever importing a name.

What a file may contain is decided here: plain values, NumPy arrays, tensors, and *records*, classes
that the library registered beforehand under a name. A name that is not in the registry is refused,
so reading a stranger's file cannot run code.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from pathlib import Path, PurePath
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from castalia.errors import CastaliaError, CheckpointMismatch, DamagedFile, InvalidParameter
from castalia.protocols import Spec
from castalia.train.state_trees import Decode, Encode, first_line, flatten, unflatten
from castalia.utils.text import did_you_mean, shorten

__all__ = ["Lookup", "Record", "decode", "encode", "register", "restored"]

T = TypeVar("T", bound=type)


class Record(NamedTuple):
    """How values of one class are written and made again."""

    name: str
    cls: type
    state: Callable[[Any], Any]
    restore: Callable[[Any], Any]


Lookup = Callable[[type | str], Record | None]  # finds a record by its class or by its name

_RECORDS: dict[str, Record] = {}
_BY_CLASS: dict[type, Record] = {}


def register(
    cls: T,
    name: str | None = None,
    state: Callable[[Any], Any] | None = None,
    restore: Callable[[Any], Any] | None = None,
) -> T:
    """Allow values of a class in saved models; also usable as a decorator.

    Parameters
    ----------
    cls
        The class; exactly it, not its subclasses.
    name
        The name written to files; the class's own when None. It must never change.
    state
        Turns a value into encodable ones. By default the method ``state()``, else a dataclass's
        fields.
    restore
        Makes the value again. By default the class method ``from_state()``, else the constructor.

    Returns
    -------
    type
        The class.

    Examples
    --------
    >>> @register
    ... @dataclasses.dataclass
    ... class Example:
    ...     x: float
    >>> decode(*encode(Example(0.5)))
    Example(x=0.5)
    """
    name = cls.__name__ if name is None else name
    known = _RECORDS.get(name)
    if known is not None and _full_name(known.cls) != _full_name(cls):
        raise InvalidParameter(
            f"register: `name` must be new; got {name!r}, which is {_full_name(known.cls)}."
        )
    record = Record(name, cls, state or _default_state(cls), restore or _default_restore(cls))
    _RECORDS[name] = _BY_CLASS[cls] = record
    return cls


def _full_name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _default_state(cls: type) -> Callable[[Any], Any]:
    if hasattr(cls, "state") and hasattr(cls, "from_state"):
        return lambda value: value.state()
    if dataclasses.is_dataclass(cls):
        names = [field.name for field in dataclasses.fields(cls) if field.init]
        return lambda value: {name: getattr(value, name) for name in names}
    raise InvalidParameter(
        f"register: `{cls.__name__}` must be a dataclass or have `state()` and `from_state()`. "
        "Pass `state` and `restore`."
    )


def _default_restore(cls: type) -> Callable[[Any], Any]:
    if hasattr(cls, "from_state"):
        return cls.from_state
    return lambda state: cls(**state)


def encode(value: Any, *, lookup: Lookup | None = None) -> tuple[Any, dict[str, Tensor]]:
    """Split a value into a tree that JSON can hold and named tensors.

    Parameters
    ----------
    value
        None, bool, int, float, str, list, tuple, dict, NumPy scalars and arrays, tensors, paths,
        devices and registered records, nested at will.
    lookup
        Finds further records by class.

    Raises
    ------
    InvalidParameter
        When some part is of another kind; the message names it by its path.

    Examples
    --------
    >>> decode(*encode({"classes_": np.array(["no", "yes"]), 0: np.float32(0.1)}))
    {'classes_': array(['no', 'yes'], dtype='<U3'), 0: np.float32(0.1)}
    """

    def other(part: Any, path: str, inner: Encode) -> Any:
        kind = type(part)
        if kind is np.ndarray:
            return _encode_array(part, path, inner)
        if isinstance(part, np.generic):
            return _encode_scalar(part, path, inner)
        if kind in _SIMPLE:
            name, write, _ = _SIMPLE[kind]
            return {"$": name, "value": inner(write(part), path)}
        record = _BY_CLASS.get(kind) or (lookup(kind) if lookup else None)
        if record is not None:
            return {"$": "record", "name": record.name, "state": inner(record.state(part), path)}
        return None

    tensors, tree = flatten(value, other=other)
    return tree, tensors


def decode(tree: Any, tensors: Mapping[str, Tensor], *, lookup: Lookup | None = None) -> Any:
    """Put back together what ``encode`` split.

    Raises
    ------
    CheckpointMismatch
        When the tree names a record that is not registered, or that cannot be made from its state.
    DamagedFile
        When the tree makes no sense or a tensor is missing.
    """

    def other(node: dict[str, Any], inner: Decode) -> Any:
        kind = node["$"]
        if kind == "record":
            return restored(_record(node["name"], lookup), inner(node["state"]))
        if kind in _READERS:
            return _READERS[kind](node, inner)
        raise CheckpointMismatch(
            f"castalia.load: the file holds an unknown kind of value, {shorten(repr(kind))}. "
            "Upgrade Castalia if a newer version wrote it."
        )

    return unflatten(tensors, tree, other=other)


def _record(name: Any, lookup: Lookup | None) -> Record:
    if not isinstance(name, str):
        raise DamagedFile(
            f"castalia.load: a record's name must be text; got {shorten(repr(name))}."
        )
    found = _RECORDS.get(name) or (lookup(name) if lookup else None)
    if found is None:
        raise CheckpointMismatch(
            f"castalia.load: the file holds a record {shorten(repr(name))}, which this Castalia "
            f"does not know; nothing was imported.{did_you_mean(name, _RECORDS)}"
        )
    return found


def restored(record: Record, state: Any) -> Any:
    """Make a record again; whatever a wrong state makes it raise becomes one sentence."""
    try:
        return record.restore(state)
    except CastaliaError:
        raise
    except Exception as error:
        raise CheckpointMismatch(
            f"castalia.load: a `{record.name}` cannot be made from what the file holds "
            f"({first_line(error)})."
        ) from error


# -- NumPy ------------------------------------------------------------------------------------

_NUMBERS = re.compile(r"[<>|][biufc]\d{1,2}")
_TEXT = re.compile(r"[<>]U\d{1,9}")
ROOM = 2**26  # bytes
_TIMES = re.compile(r"[<>][mM]8(\[\d{0,9}(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\])?")


def _refuse(dtype: np.dtype, path: str) -> InvalidParameter:
    return InvalidParameter(
        f"castalia.save: `{path or 'value'}` must hold numbers, text, dates or plain objects; "
        f"got an array of dtype {dtype}. Convert it first."
    )


def _encode_array(array: np.ndarray, path: str, inner: Encode) -> Any:
    """Write numbers as a tensor, the rest as JSON; memory order is kept, as sums depend on it."""
    dtype = array.dtype
    node = {"$": "array", "dtype": dtype.str}
    if array.flags.f_contiguous and not array.flags.c_contiguous:
        node["order"] = "F"
    if _NUMBERS.fullmatch(dtype.str) and dtype.itemsize <= (16 if dtype.kind == "c" else 8):
        native = np.array(array, dtype=dtype.newbyteorder("="), order="C", copy=True)
        return node | {"data": inner(torch.from_numpy(native), path)}
    flat = array.reshape(-1)
    if dtype.kind in "mM":
        flat = flat.astype(dtype.newbyteorder("=")).view(np.int64)
    elif dtype.kind != "O" and not _TEXT.fullmatch(dtype.str):
        raise _refuse(dtype, path)
    if dtype.kind == "U" and _too_wide(dtype.str, flat.tolist()):
        raise InvalidParameter(
            f"castalia.save: `{path or 'value'}` must be text about as wide as it is long; got "
            f"{len(flat):,} entries of dtype {dtype}. Convert it with `.astype(object)`."
        )
    return node | {"shape": list(array.shape), "data": inner(flat.tolist(), path)}


def _decode_array(node: dict[str, Any], inner: Decode) -> np.ndarray:
    name, data, order = node["dtype"], inner(node["data"]), node.get("order", "C")
    if not isinstance(name, str) or order not in ("C", "F"):
        raise ValueError("array node")
    if isinstance(data, Tensor):
        if not _NUMBERS.fullmatch(name):
            raise ValueError(f"dtype {name!r}")
        found = data.numpy()
        if found.dtype != np.dtype(name).newbyteorder("="):
            raise ValueError(f"dtype {found.dtype} for {name}")
        return np.array(found, dtype=name, order=order, copy=True)
    return np.asarray(_flat_array(name, data).reshape(node["shape"]), order=order)


def _flat_array(name: str, data: list[Any]) -> np.ndarray:
    """Make a one-dimensional array of text, times or objects."""
    if not isinstance(data, list):
        raise ValueError("array data")
    if name == "|O":
        flat = np.empty(len(data), dtype=object)
        for i, item in enumerate(data):  # one by one: NumPy would unpack lists
            flat[i] = item
        return flat
    if _TIMES.fullmatch(name):
        return np.array(data, dtype=np.int64).view(np.dtype(name).newbyteorder("=")).astype(name)
    plain = _TEXT.fullmatch(name) and all(isinstance(item, str) for item in data)
    if plain and not _too_wide(name, data):
        return np.array(data, dtype=name)
    raise ValueError(f"dtype {name!r}")


def _too_wide(name: str, texts: list[str]) -> bool:
    """Whether text of a dtype needs far more room than its characters do in a file."""
    room = 4 * int(name[2:]) * len(texts)
    return room > ROOM + 16 * sum(len(text) + 1 for text in texts)


def _encode_scalar(value: np.generic, path: str, inner: Encode) -> Any:
    """Write a NumPy scalar readably where Python's number holds all of its bits."""
    node = {"$": "scalar", "dtype": value.dtype.str}
    readable = value.dtype.kind in "biuU" or value.dtype.str[1:] in ("f8", "f4", "f2")
    if readable and value == value:
        return node | {"value": inner(value.item(), path)}
    if value.dtype.kind in "VO":
        raise _refuse(value.dtype, path)
    return {"$": "scalar", "array": _encode_array(np.asarray(value), path, inner)}


def _decode_scalar(node: dict[str, Any], inner: Decode) -> Any:
    if "array" in node:
        array = inner(node["array"])
        if not isinstance(array, np.ndarray) or array.dtype.kind == "O":
            raise ValueError("scalar node")
        return array[()]
    name, value = node["dtype"], inner(node["value"])
    if not isinstance(name, str) or not (_NUMBERS.fullmatch(name) or _TEXT.fullmatch(name)):
        raise ValueError(f"dtype {name!r}")
    if not isinstance(value, bool | int | float | str):
        raise ValueError("scalar value")
    return np.dtype(name).type(value)


_READERS: dict[Any, Callable[[dict[str, Any], Decode], Any]] = {
    "array": _decode_array,
    "scalar": _decode_scalar,
}


# -- small things of other libraries ----------------------------------------------------------


def _dtype(name: str) -> torch.dtype:
    known = {str(value): value for value in vars(torch).values() if isinstance(value, torch.dtype)}
    return known[name]


_SIMPLE: dict[type, tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = {
    complex: ("complex", lambda value: [value.real, value.imag], lambda pair: complex(*pair)),
    bytes: ("bytes", bytes.hex, bytes.fromhex),
    torch.device: ("device", str, torch.device),
    torch.dtype: ("dtype", str, _dtype),
    type(Path()): ("path", PurePath.as_posix, Path),
}


def _reader(restore: Callable[[Any], Any]) -> Callable[[dict[str, Any], Decode], Any]:
    return lambda node, inner: restore(inner(node["value"]))


_READERS |= {name: _reader(restore) for name, _, restore in _SIMPLE.values()}

_BIT_GENERATORS = {
    cls.__name__: cls
    for cls in (
        np.random.PCG64,
        np.random.PCG64DXSM,
        np.random.MT19937,
        np.random.Philox,
        np.random.SFC64,
    )
}


def _generator(state: Any) -> np.random.Generator:
    bits = _BIT_GENERATORS[state["bit_generator"]]()
    bits.state = state
    return np.random.Generator(bits)


def _random_state(state: dict[str, Any]) -> np.random.RandomState:
    made = np.random.RandomState()
    made.set_state(state)
    return made


register(Spec, state=lambda spec: {**vars(spec), "extra": dict(spec.extra)})
register(np.random.Generator, "numpy.Generator", lambda g: g.bit_generator.state, _generator)
register(
    np.random.RandomState, "numpy.RandomState", lambda r: r.get_state(legacy=False), _random_state
)
