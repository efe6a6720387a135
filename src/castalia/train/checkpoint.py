"""Checkpoints: one file a step, whole or not there, checked when read.

A checkpoint is a safetensors file. Its metadata hold the state as JSON and a SHA-256 over the whole
file (taken while the digest itself reads as zeros), so a flipped bit anywhere is found. Nothing
here knows the loop; ``flatten`` and ``unflatten`` turn any nested state, such as an optimizer's,
into tensors and JSON.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import re
import struct
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_safetensors
from torch import Tensor

from castalia.errors import (
    CastaliaError,
    CheckpointMismatch,
    DamagedFile,
    InvalidParameter,
    TrainingWarning,
)
from castalia.utils.files import atomic_write
from castalia.utils.text import shorten

__all__ = [
    "WriteFailed",
    "first_line",
    "flatten",
    "latest_checkpoint",
    "pack",
    "read_checkpoint",
    "unflatten",
    "unpack",
    "write_checkpoint",
    "writing",
]

FORMAT = 1
_NAME = re.compile(r"step-(\d{8,})\.safetensors")
_ZEROS = b"0" * 64

# Names of the safetensors format; what it lacks is stored as bytes and named in the metadata.
_CODES = {
    torch.bool: "BOOL",
    torch.uint8: "U8",
    torch.int8: "I8",
    torch.uint16: "U16",
    torch.int16: "I16",
    torch.uint32: "U32",
    torch.int32: "I32",
    torch.uint64: "U64",
    torch.int64: "I64",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.float32: "F32",
    torch.float64: "F64",
    torch.complex64: "C64",
    torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e5m2: "F8_E5M2",
}
_AS_BYTES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (torch.complex128, torch.complex32, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz)
}

Encode = Callable[[Any, str], Any]
Decode = Callable[[Any], Any]


class WriteFailed(CastaliaError, OSError):
    """A file could not be written; what was saved before is untouched."""


@contextmanager
def writing(owner: str, path: str | Path) -> Iterator[None]:
    """Turn the system's error while writing into one sentence."""
    try:
        yield
    except CastaliaError:
        raise
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        remedy = "Free some space and save again" if full else "Choose a path you can write to"
        failed = WriteFailed(
            f"{owner}: `{path}` could not be written ({error.strerror or error}); "
            f"what was saved before is untouched. {remedy}."
        )
        failed.errno = error.errno
        raise failed from error


def first_line(error: BaseException) -> str:
    """Name an error in a few words of one line."""
    return f"{type(error).__name__}: {shorten(str(error).partition(chr(10))[0], 160)}"


# -- tensors to bytes -------------------------------------------------------------------------


def _plain(name: str, tensor: Tensor) -> Tensor:
    """Return the tensor as a contiguous one on the CPU, or say why it cannot be stored."""
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.device.type == "meta":
        raise InvalidParameter(
            f"pack: tensor `{name}` must be dense and hold data; got layout {tensor.layout}, "
            f"dtype {tensor.dtype} on {tensor.device}. Convert it with `.to_dense()` first."
        )
    return tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()


def _bytes(tensor: Tensor) -> memoryview:
    """See a contiguous tensor's memory as bytes, without a copy."""
    if tensor.numel() == 0:
        return memoryview(b"")
    return tensor.reshape(-1).view(torch.uint8).numpy().data


def pack(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> bytes:
    """Return the safetensors file of these tensors as bytes.

    Unlike ``safetensors.torch.save`` it takes shared, strided and CUDA tensors and every dense
    dtype, and the same input always gives the same bytes.

    Examples
    --------
    >>> tensors, metadata = unpack(pack({"w": torch.ones(2)}, {"note": "two ones"}))
    >>> tensors["w"], metadata
    (tensor([1., 1.]), {'note': 'two ones'})
    """
    return b"".join(_parts(tensors, metadata or {}))


def _parts(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> list[Any]:
    """Return the header of the file and each tensor's memory, not yet copied together."""
    header: dict[str, Any] = {}
    casts, parts, offset = {}, [], 0
    plain = {name: _plain(name, tensor) for name, tensor in tensors.items()}
    # Wide numbers first keeps every tensor aligned inside the file.
    for name in sorted(plain, key=lambda name: (-plain[name].element_size(), name)):
        tensor, data = plain[name], _bytes(plain[name])
        code, shape = _CODES.get(tensor.dtype), list(tensor.shape)
        if code is None:
            casts[name] = _cast_name(name, tensor.dtype)
            code, shape = "U8", [*shape, tensor.element_size()]
        header[name] = {"dtype": code, "shape": shape, "data_offsets": [offset, offset + len(data)]}
        parts.append(data)
        offset += len(data)
    notes = dict(metadata) | ({"casts": json.dumps(casts)} if casts else {})
    if "__metadata__" in header:
        raise InvalidParameter(
            "pack: a tensor must not be named `__metadata__`; got one. Rename it."
        )
    head = json.dumps({"__metadata__": notes} | header, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    return [struct.pack("<Q", len(head)) + head, *parts]


def _cast_name(name: str, dtype: torch.dtype) -> str:
    short = str(dtype).removeprefix("torch.")
    if short not in _AS_BYTES:
        raise InvalidParameter(
            f"pack: tensor `{name}` must have a dtype that can be stored; got {dtype}. Convert it "
            "first."
        )
    return short


def _header(raw: bytes) -> tuple[dict[str, Any], int]:
    """Parse the header; return it and where the tensors begin."""
    if len(raw) < 8:
        raise ValueError("too short")
    end = 8 + struct.unpack("<Q", raw[:8])[0]
    if end > len(raw):
        raise ValueError("truncated header")
    header = json.loads(raw[8:end])
    if not isinstance(header, dict):
        raise ValueError("header is not an object")
    return header, end


def unpack(raw: bytes) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return the tensors and metadata of a safetensors file; raise ValueError for anything else."""
    try:
        header, _ = _header(raw)
        metadata = dict(header.get("__metadata__") or {})
        tensors = dict(load_safetensors(raw))
        for name, dtype in json.loads(metadata.pop("casts", "{}")).items():
            tensors[name] = tensors[name].view(_AS_BYTES[dtype]).squeeze(-1)
    except (
        SafetensorError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RuntimeError,
        MemoryError,
    ) as error:
        raise ValueError(f"not a whole safetensors file: {error}") from error
    return tensors, metadata


# -- files ------------------------------------------------------------------------------------


def _sealed(raw: bytes, position: int) -> str:
    """Return the SHA-256 of the file, with the 64 characters of the digest itself read as zeros."""
    view = memoryview(raw)
    hashed = hashlib.sha256(view[:position])
    hashed.update(_ZEROS)
    hashed.update(view[position + 64 :])
    return hashed.hexdigest()


def _seal_position(raw: bytes, end: int, digest: bytes) -> int:
    """Find the digest in the header; quotes inside other strings are escaped, so it occurs once."""
    key = b'"digest":"'
    found = raw.find(key + digest + b'"', 8, end)
    if found < 0:
        raise ValueError("no digest")
    return found + len(key)


def write_checkpoint(
    folder: str | Path, step: int, tensors: Mapping[str, Tensor], state: Any, *, keep: int = 2
) -> Path:
    """Write one checkpoint and delete all but the last ones written.

    The file is written aside, forced to disk and renamed, so the previous checkpoint survives
    whatever happens on the way.

    Parameters
    ----------
    folder
        Where the run's checkpoints lie; made when missing.
    step
        Number of the optimizer step; part of the file's name.
    tensors
        Named tensors on any device.
    state
        Plain JSON values; see ``flatten`` for richer ones.
    keep
        How many checkpoints to leave, this one included.

    Returns
    -------
    Path
        The file written.

    Raises
    ------
    WriteFailed
        When the disk is full or the folder cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> write_checkpoint(folder, 3, {"w": torch.ones(2)}, {"epoch": 1}).name
    'step-00000003.safetensors'
    >>> tensors, state = latest_checkpoint(folder)
    >>> state
    {'epoch': 1}
    """
    if keep < 1:
        raise InvalidParameter(f"write_checkpoint: `keep` must be at least 1; got {keep}.")
    path = Path(folder) / f"step-{step:08d}.safetensors"
    try:
        text = json.dumps(state, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidParameter(
            f"write_checkpoint: `state` must hold plain JSON values; {error}. Pass it through "
            "`flatten`."
        ) from error
    metadata = {"digest": _ZEROS.decode(), "format": f"castalia-checkpoint-{FORMAT}", "state": text}
    head, *parts = _parts(tensors, metadata)
    position = _seal_position(head, len(head), _ZEROS)
    hashed = hashlib.sha256(head)
    for part in parts:
        hashed.update(part)
    head = head[:position] + hashed.hexdigest().encode() + head[position + 64 :]
    with writing("write_checkpoint", path):
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(path, b"".join([head, *parts]))
    _prune(path, keep)
    return path


def _prune(written: Path, keep: int) -> None:
    """Delete old checkpoints by age, not step: after a rewind, higher steps are the stale ones."""
    aged = []
    for path in _checkpoints(written.parent):
        with suppress(OSError):
            aged.append((path == written, path.stat().st_mtime_ns, path))
    for _, _, path in sorted(aged, reverse=True)[keep:]:
        with suppress(OSError):
            path.unlink()


def _checkpoints(folder: str | Path) -> list[Path]:
    """Return the checkpoint files of a folder, highest step first."""
    found = []
    for path in Path(folder).glob("step-*.safetensors"):
        if match := _NAME.fullmatch(path.name):
            found.append((int(match[1]), path))
    return [path for _, path in sorted(found, reverse=True)]


def read_checkpoint(path: str | Path) -> tuple[dict[str, Tensor], Any]:
    """Read one checkpoint and check every byte of it.

    Returns
    -------
    tuple
        The tensors, on the CPU, and the state.

    Raises
    ------
    DamagedFile
        When the file is truncated, altered or not a checkpoint.
    CheckpointMismatch
        When a newer Castalia wrote it.
    """
    try:
        raw = Path(path).read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise DamagedFile(
            f"read_checkpoint: `{path}` cannot be read ({error.strerror})."
        ) from error
    try:
        return _opened(raw, path)
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise DamagedFile(
            f"read_checkpoint: `{path}` is truncated, altered or not a Castalia checkpoint. "
            "Delete it to go on from the one before."
        ) from error


def _opened(raw: bytes, path: str | Path) -> tuple[dict[str, Tensor], Any]:
    """Check and take apart a checkpoint's bytes; ValueError when anything is wrong."""
    header, end = _header(raw)
    metadata = header.get("__metadata__")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("digest"), str):
        raise ValueError("no digest")
    digest = metadata["digest"]
    if _sealed(raw, _seal_position(raw, end, digest.encode())) != digest:
        raise ValueError("digest differs")
    if metadata.get("format") != f"castalia-checkpoint-{FORMAT}":
        raise CheckpointMismatch(
            f"read_checkpoint: `{path}` has the format {metadata.get('format')!r}; this Castalia "
            f"reads 'castalia-checkpoint-{FORMAT}'. Upgrade Castalia to go on from it."
        )
    tensors, notes = unpack(raw)
    return tensors, json.loads(notes["state"])


def latest_checkpoint(
    folder: str | Path, *, clean: bool = True
) -> tuple[dict[str, Tensor], Any] | None:
    """Return the newest whole checkpoint of a folder, or None.

    A damaged file is skipped with a warning that names it.

    Parameters
    ----------
    folder
        Where the run's checkpoints lie; it may be missing.
    clean
        Whether to delete what interrupted writes left behind. Pass False when another process may
        be writing there.
    """
    if clean:
        for leftover in Path(folder).glob(".step-*.safetensors.*"):
            with suppress(OSError):
                leftover.unlink()
    for path in _checkpoints(folder):
        try:
            return read_checkpoint(path)
        except FileNotFoundError:  # the training just replaced it
            continue
        except DamagedFile:
            warnings.warn(
                f"latest_checkpoint: `{path}` is damaged; the checkpoint before it is used.",
                TrainingWarning,
                stacklevel=2,
            )
    return None


# -- nested states ----------------------------------------------------------------------------


def flatten(
    tree: Any, *, other: Callable[[Any, str, Encode], Any] | None = None
) -> tuple[dict[str, Tensor], Any]:
    """Split a nested structure into named tensors and a tree that JSON can hold.

    Dicts (with any plain keys), lists, tuples, None, bool, int, float, str and tensors come back
    exactly; ordered dicts come back as dicts and NumPy scalars as Python's.

    Parameters
    ----------
    tree
        The structure, such as an optimizer's ``state_dict()``.
    other
        ``other(value, path, encode)`` returns a node for values of further types, or None.

    Returns
    -------
    tuple
        Tensors named by their path, and the JSON tree that refers to them.

    Examples
    --------
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
        "`castalia.base.codec.register`, or leave it out."
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

    Parameters
    ----------
    tensors, tree
        What ``flatten`` returned, or what was read back from a file.
    other
        ``other(node, decode)`` makes values of further types.

    Raises
    ------
    DamagedFile
        When the tree is not one that ``flatten`` makes, or a tensor is missing.
    CheckpointMismatch
        When the tree holds a kind of value this version does not know.
    """

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


def _tensor(node: dict[str, Any], decode: Decode, tensors: Mapping[str, Tensor]) -> Tensor:
    name = node["name"]
    if name not in tensors:
        raise DamagedFile(
            f"castalia: the file refers to the tensor {name!r}, which is missing from it."
        )
    return tensors[name]


_DECODERS: dict[Any, Callable[[dict[str, Any], Decode, Mapping[str, Tensor]], Any]] = {
    "int": lambda node, decode, tensors: int(node["hex"], 16),
    "float": lambda node, decode, tensors: struct.unpack(">d", bytes.fromhex(node["hex"]))[0],
    "tuple": lambda node, decode, tensors: tuple(decode(item) for item in node["items"]),
    "dict": lambda node, decode, tensors: {decode(k): decode(v) for k, v in node["items"]},
    "tensor": _tensor,
}
