"""Checkpoints: one file a step, whole or not there, checked when read.

A checkpoint is a safetensors file. Its metadata hold the state as JSON and a SHA-256 over the whole
file (taken while the digest itself reads as zeros), so a flipped bit anywhere is found. Nothing
here knows the loop. Where processes divide the weights, the file holds the rest of the state and
names the folder of their shards.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from torch import Tensor

from castalia.errors import (
    CastaliaError,
    CheckpointMismatch,
    DamagedFile,
    InvalidParameter,
    TrainingWarning,
)
from castalia.train.tensorfile import parts, read_header, unpack
from castalia.utils.atomic_files import atomic_write, writing
from castalia.utils.regular_files import parse_json, read_regular

__all__ = ["latest_checkpoint", "read_checkpoint", "write_checkpoint"]

FORMAT = 1
_NAME = re.compile(r"step-(\d{8,})\.safetensors")
_ZEROS = b"0" * 64


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
    >>> import tempfile, torch
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
    head, *memory = parts(tensors, metadata)
    position = _seal_position(head, len(head), _ZEROS)
    hashed = hashlib.sha256(head)
    for part in memory:
        hashed.update(part)
    head = head[:position] + hashed.hexdigest().encode() + head[position + 64 :]
    with writing("write_checkpoint", path):
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(path, b"".join([head, *memory]))
    _prune(path, keep)
    return path


def _prune(written: Path, keep: int) -> None:
    """Delete old checkpoints by age, not step: after a rewind, higher steps are the stale ones."""
    aged = []
    for path in _checkpoints(written.parent):
        with suppress(OSError):
            aged.append((path == written, path.stat().st_mtime_ns, path))
    ordered = [path for _, _, path in sorted(aged, reverse=True)]
    for path in ordered[keep:]:
        with suppress(OSError):
            path.unlink()
    _drop_shards(written.parent, ordered[:keep])


def _drop_shards(folder: Path, kept: list[Path]) -> None:
    """Delete the shards that none of these checkpoints refers to."""
    found = list(folder.glob("*.shards"))
    needed = set()
    for path in kept if found else []:
        with suppress(CastaliaError, OSError):
            needed.add(read_checkpoint(path)[1]["shards"]["folder"])
    for place in found:
        if place.name not in needed:
            shutil.rmtree(place, ignore_errors=True)


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
        raw = read_regular(path)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise DamagedFile(
            f"read_checkpoint: `{path}` cannot be read ({error.strerror})."
        ) from error
    try:
        return _opened(raw, path)
    except (ValueError, LookupError, TypeError) as error:
        raise DamagedFile(
            f"read_checkpoint: `{path}` is truncated, altered or not a Castalia checkpoint. "
            "Delete it to go on from the one before."
        ) from error


def _opened(raw: bytes, path: str | Path) -> tuple[dict[str, Tensor], Any]:
    """Check and take apart a checkpoint's bytes; ValueError when anything is wrong."""
    header, end = read_header(raw)
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
    return tensors, parse_json(notes["state"])


def latest_checkpoint(
    folder: str | Path,
    *,
    clean: bool = True,
    shards_are_whole: Callable[[Path, dict[str, str]], bool] | None = None,
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
    shards_are_whole
        Says whether the files of a folder, with their digests, are there and unaltered; None:
        checkpoints that are divided among processes are not expected.
    """
    if clean:
        for leftover in Path(folder).glob(".step-*.safetensors.*"):
            with suppress(OSError):
                leftover.unlink()
        _drop_shards(Path(folder), _checkpoints(folder))
    for path in _checkpoints(folder):
        try:
            tensors, state = read_checkpoint(path)
            shards = state.get("shards") if isinstance(state, dict) else None
            if shards and not _whole(Path(folder), shards, shards_are_whole):
                raise DamagedFile(f"latest_checkpoint: shards of `{path}` are damaged.")
            return tensors, state
        except FileNotFoundError:  # the training just replaced it
            continue
        except DamagedFile:
            warnings.warn(
                f"latest_checkpoint: `{path}` is damaged; the checkpoint before it is used.",
                TrainingWarning,
                stacklevel=2,
            )
    return None


def _whole(
    folder: Path, shards: dict[str, Any], check: Callable[[Path, dict[str, str]], bool] | None
) -> bool:
    return check is not None and check(folder / shards["folder"], shards["digests"])
