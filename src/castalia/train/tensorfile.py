"""Tensors as the bytes of a safetensors file."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_safetensors
from torch import Tensor

from castalia.errors import InvalidParameter
from castalia.utils.regular_files import parse_json

__all__ = ["pack", "parts", "read_header", "unpack"]

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
    return b"".join(parts(tensors, metadata or {}))


def parts(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> list[Any]:
    """Return the header of the file and each tensor's memory, not yet copied together."""
    header: dict[str, Any] = {}
    casts, memory, offset = {}, [], 0
    plain = {name: _plain(name, tensor) for name, tensor in tensors.items()}
    # Wide numbers first keeps every tensor aligned inside the file.
    for name in sorted(plain, key=lambda name: (-plain[name].element_size(), name)):
        tensor, data = plain[name], _bytes(plain[name])
        code, shape = _CODES.get(tensor.dtype), list(tensor.shape)
        if code is None:
            casts[name] = _cast_name(name, tensor.dtype)
            code, shape = "U8", [*shape, tensor.element_size()]
        header[name] = {"dtype": code, "shape": shape, "data_offsets": [offset, offset + len(data)]}
        memory.append(data)
        offset += len(data)
    notes = dict(metadata) | ({"casts": json.dumps(casts)} if casts else {})
    if "__metadata__" in header:
        raise InvalidParameter(
            "pack: a tensor must not be named `__metadata__`; got one. Rename it."
        )
    head = json.dumps({"__metadata__": notes} | header, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    return [struct.pack("<Q", len(head)) + head, *memory]


def _cast_name(name: str, dtype: torch.dtype) -> str:
    short = str(dtype).removeprefix("torch.")
    if short not in _AS_BYTES:
        raise InvalidParameter(
            f"pack: tensor `{name}` must have a dtype that can be stored; got {dtype}. Convert it "
            "first."
        )
    return short


def read_header(raw: bytes) -> tuple[dict[str, Any], int]:
    """Parse the header; return it and where the tensors begin."""
    if len(raw) < 8:
        raise ValueError("too short")
    end = 8 + struct.unpack("<Q", raw[:8])[0]
    if end > len(raw):
        raise ValueError("truncated header")
    header = parse_json(raw[8:end])
    if not isinstance(header, dict):
        raise ValueError("header is not an object")
    return header, end


def unpack(raw: bytes) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return the tensors and metadata of a safetensors file; raise ValueError for anything else."""
    try:
        header, _ = read_header(raw)
        metadata = dict(header.get("__metadata__") or {})
        tensors = dict(load_safetensors(raw))
        for name, dtype in parse_json(metadata.pop("casts", "{}")).items():
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
