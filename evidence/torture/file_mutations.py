"""Damage to files: of bytes, of fields, of packed parts, and with the seals made right again."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import random
import struct
import zipfile
from collections.abc import Callable
from typing import Any

from castalia.base.pipeline_store import _checksum as pipeline_checksum
from castalia.base.store import _checksum as model_checksum

Files = dict[str, bytes]
HUGE = (2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**63 - 1, 10**18, 10**30, 16_000, 100_000, 10**6)
SMALL = (0, 1, -1, 2, 3, 7, 255, 256, -(2**31))
WORDS = (
    "",
    "x",
    "NaN",
    "-inf",
    "../../x",
    "/dev/zero",
    "\0",
    "é\u202e",
    "<U200000000",
    "|O",
    "$",
    "F32",
    "(a+)+$",
    "a" * 5000,
)


# -- bytes --


def _span(rng: random.Random, raw: bytes) -> tuple[int, int]:
    start = rng.randrange(len(raw))
    return start, min(len(raw), start + rng.choice((1, 2, 4, 8, 64, 1024, len(raw))))


def flip_bits(rng: random.Random, raw: bytes) -> bytes:
    changed = bytearray(raw)
    for _ in range(rng.choice((1, 1, 1, 2, 8))):
        changed[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def cut_off(rng: random.Random, raw: bytes) -> bytes:
    return raw[: rng.randrange(len(raw))]


def zero(rng: random.Random, raw: bytes) -> bytes:
    start, stop = _span(rng, raw)
    return raw[:start] + bytes(stop - start) + raw[stop:]


def double(rng: random.Random, raw: bytes) -> bytes:
    start, stop = _span(rng, raw)
    return raw[:stop] + raw[start:stop] * rng.choice((1, 1, 3)) + raw[stop:]


def drop(rng: random.Random, raw: bytes) -> bytes:
    start, stop = _span(rng, raw)
    return raw[:start] + raw[stop:]


def swap(rng: random.Random, raw: bytes) -> bytes:
    a, b, c = sorted(rng.randrange(len(raw) + 1) for _ in range(3))
    return raw[:a] + raw[b:c] + raw[a:b] + raw[c:]


def noise(rng: random.Random, raw: bytes) -> bytes:
    start, stop = _span(rng, raw)
    return raw[:start] + rng.randbytes(min(64, stop - start)) + raw[stop:]


def write_number(rng: random.Random, raw: bytes) -> bytes:
    """Overwrite some bytes by a large number, as fields of headers are."""
    number = (rng.choice((*HUGE, *SMALL)) % 2**64).to_bytes(8, rng.choice(("little", "big")))
    number = number[: rng.choice((2, 4, 8))]
    most = rng.choice((len(raw), min(64, len(raw))))
    start = rng.randrange(most)
    return raw[:start] + number + raw[start + len(number) :]


def write_digits(rng: random.Random, raw: bytes) -> bytes:
    """Replace a run of digits by a large number, as in the headers of text formats."""
    places = [i for i, byte in enumerate(raw[:4096]) if 48 <= byte < 58]
    if not places:
        return flip_bits(rng, raw)
    start = stop = rng.choice(places)
    while stop < len(raw) and 48 <= raw[stop] < 58:
        stop += 1
    return raw[:start] + str(rng.choice((*HUGE, *SMALL))).encode() + raw[stop:]


BYTES: tuple[Callable[[random.Random, bytes], bytes], ...] = (
    flip_bits, flip_bits, cut_off, zero, double, drop, swap, noise, write_number, write_digits,
)  # fmt: skip


def damage(rng: random.Random, raw: bytes) -> bytes:
    """Damage bytes in one way, sometimes in two."""
    for _ in range(rng.choice((1, 1, 1, 2))):
        raw = rng.choice(BYTES)(rng, raw) if raw else b""
    return raw


# -- fields --


def places(tree: Any) -> list[tuple]:
    """Return the paths of all fields that are not very deep."""
    found, level = [], [((), tree)]
    while level and len(level[0][0]) < 50:
        level = [((*path, key), item) for path, node in level for key, item in _items(node)]
        found += [path for path, _ in level]
    return found


def _items(node: Any) -> Any:
    if isinstance(node, dict):
        return node.items()
    return enumerate(node) if isinstance(node, list) else ()


def strange(rng: random.Random, old: Any) -> Any:
    """Return another value for a field, often of the same kind."""
    number = rng.choice((*HUGE, *SMALL))
    if type(old) is int and rng.random() < 0.7:
        return number
    if isinstance(old, list) and old and rng.random() < 0.5:
        return rng.choice((old + old[:9], old[:-1], [number] * len(old), [number] * 1000, [old]))
    choices = [None, True, False, number, float(number), 0.5, rng.choice(WORDS), [], {}, [number]]
    choices += [{"$": rng.choice(("tensor", "array", "tuple", "record", "x"))}, deep(rng), [old]]
    choices += [{"$": "array", "dtype": "<U200000000", "shape": [1], "data": ["a"]}]
    return rng.choice(choices)


def deep(rng: random.Random) -> Any:
    value: Any = 0
    for _ in range(rng.choice((3, 70, 500))):
        value = [value] if rng.random() < 0.5 else {"a": value}
    return value


def edit(rng: random.Random, tree: Any) -> Any:
    """Change, delete, rename or move fields of a JSON tree, in place."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        found = places(tree)
        if not found:
            return tree
        *before, last = rng.choice(found)
        owner = tree
        for key in before:
            owner = owner[key]
        how = rng.random()
        if how < 0.1:
            del owner[last]
        elif how < 0.2 and isinstance(owner, dict):
            owner[rng.choice((*WORDS, f"{last}x"))] = owner.pop(last)
        elif how < 0.3 and isinstance(owner, list):
            owner.insert(last, owner[rng.randrange(len(owner))])
        else:
            owner[last] = strange(rng, owner[last])
    return tree


def edit_json(rng: random.Random, raw: bytes) -> bytes:
    return _dumped(rng, edit(rng, json.loads(raw)))


def _dumped(rng: random.Random, tree: Any) -> bytes:
    try:
        return json.dumps(tree, ensure_ascii=rng.random() < 0.8).encode("utf-8", "replace")
    except RecursionError:
        return b"[" * 2000


# -- safetensors --


def edit_tensors(rng: random.Random, raw: bytes) -> bytes:
    """Change the header of a safetensors file, or a number in it; its length is made right."""
    (size,) = struct.unpack("<Q", raw[:8])
    head, body = raw[8 : 8 + size], raw[8 + size :]
    if rng.random() < 0.3:
        body = damage(rng, body) if body else body
    else:
        head = edit_json(rng, head)
    return struct.pack("<Q", len(head)) + head + body


# -- seals: what a stranger can do too --


def seal_model(files: Files) -> Files:
    """Give a saved model the checksums of what it holds now."""
    head = json.loads(files["model.json"])
    if isinstance(head, dict):
        raw = files["weights.safetensors"]
        head["files"] = {"weights.safetensors": hashlib.sha256(raw).hexdigest()}
        head["checksum"] = model_checksum(head)
    return files | {"model.json": json.dumps(head).encode()}


def seal_pipeline(files: Files) -> Files:
    """Give a saved pipeline the checksums of what it holds now."""
    head = json.loads(files["pipeline.json"])
    if isinstance(head, dict):
        for step in head.get("steps") or ():
            if isinstance(step, dict) and step.get("place") in files:
                step["sha256"] = hashlib.sha256(files[step["place"]]).hexdigest()
        head["checksum"] = pipeline_checksum(head)
    return files | {"pipeline.json": json.dumps(head).encode()}


def seal_checkpoint(raw: bytes) -> bytes:
    """Give a checkpoint the digest of what it holds now."""
    (size,) = struct.unpack("<Q", raw[:8])
    head = json.loads(raw[8 : 8 + size])
    head["__metadata__"]["digest"] = "0" * 64
    text = json.dumps(head, separators=(",", ":")).encode()
    start = struct.pack("<Q", len(text)) + text
    digest = hashlib.sha256(start + raw[8 + size :]).hexdigest().encode()
    return start.replace(b'"digest":"' + b"0" * 64, b'"digest":"' + digest) + raw[8 + size :]


# -- packed files --


def inside_zip(rng: random.Random, raw: bytes) -> bytes:
    """Damage one file of a zip archive; the archive itself is whole."""
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    name = rng.choice(sorted(parts))
    parts[name] = (edit_json if name.endswith(".json") else damage)(rng, parts[name] or b" ")
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return out.getvalue()


def inside_gzip(rng: random.Random, raw: bytes) -> bytes:
    return gzip.compress(damage(rng, gzip.decompress(raw)) or b" ", 1)
