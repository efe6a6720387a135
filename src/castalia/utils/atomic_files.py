"""Files that are either whole or not there."""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from castalia.errors import CastaliaError, WriteFailed
from castalia.utils.file_locks import held, is_held

__all__ = [
    "atomic_file",
    "atomic_folder",
    "atomic_write",
    "digest",
    "sweep_files",
    "sync_folder",
    "writing",
]

_ASIDE = re.compile(r"[a-z0-9_]{8}(\.old)?")  # how `tempfile` ends names
_FILE_ASIDE = re.compile(r"\..+\.(json|html|safetensors)\.[a-z0-9_]{8}")
_STALE = 3600.0  # seconds after which what nobody holds is a leftover
_HERE, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux


def digest(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file, read in pieces."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sync_folder(path: str | os.PathLike[str]) -> None:
    """Make renames inside a folder survive a power cut, where the system allows it."""
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def atomic_write(path: str | os.PathLike[str], data: bytes | str, *, durable: bool = True) -> Path:
    """Write a file aside, force it to disk and rename it into place.

    Until the rename, an older file of that name stays as it was; a failure leaves no trace. What is
    not ``durable`` is not forced to disk: a power cut may lose it.
    """
    with atomic_file(path, durable=durable) as file:
        file.write(data.encode() if isinstance(data, str) else data)
    return Path(path)


@contextmanager
def atomic_file(path: str | os.PathLike[str], *, durable: bool = True) -> Iterator[BinaryIO]:
    """Give a file to write piece by piece, aside; at the end it is renamed into place."""
    path = Path(path)
    _sweep(path)
    handle, aside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file, held(aside):
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
        os.replace(aside, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(aside)
        raise
    if durable:
        sync_folder(path.parent)


@contextmanager
def atomic_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Fill a folder aside and swap it in when everything in it is on disk.

    Where the system can exchange two folders in one step, one of them is there at every instant.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    _sweep(path)
    aside = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    try:
        with held(aside):
            yield aside
            _sync_tree(aside)
            if not path.exists():
                os.replace(aside, path)
            elif not _exchanged(aside, path):
                _swap(aside, path)
            sync_folder(path.parent)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _sync_tree(folder: Path) -> None:
    for found in folder.rglob("*"):
        if found.is_dir():
            sync_folder(found)
        elif found.is_file():
            with open(found, "rb") as handle:
                os.fsync(handle.fileno())
    sync_folder(folder)


def _exchanged(one: Path, other: Path) -> bool:
    """Exchange two folders in one step, where the system has such a step."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None) if os.name == "posix" else None
    if rename is None:
        return False
    return rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0


def _swap(aside: Path, path: Path) -> None:
    """Exchange two folders in two steps; what was there comes back when the second one fails."""
    old = aside.with_name(aside.name + ".old")
    os.replace(path, old)
    try:
        os.replace(aside, path)
    except BaseException:
        os.replace(old, path)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _sweep(path: Path) -> None:
    """Delete what killed writers of a path left beside it: stale, and in nobody's hands."""
    prefix, stale = f".{path.name}.", time.time() - _STALE
    with suppress(OSError), os.scandir(path.parent) as entries:
        for entry in entries:
            if not entry.name.startswith(prefix) or not _ASIDE.fullmatch(entry.name[len(prefix) :]):
                continue
            if entry.name.endswith(".old") and not path.exists():
                continue  # all there is of it
            if entry.stat(follow_symlinks=False).st_mtime < stale and not is_held(entry.path):
                _remove(entry)


def sweep_files(folder: str | os.PathLike[str]) -> None:
    """Delete the files that killed writers left in a folder of ours, however young they are."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _FILE_ASIDE.fullmatch(entry.name) and not is_held(entry.path):
                _remove(entry)


def _remove(entry: os.DirEntry[str]) -> None:
    if entry.is_dir(follow_symlinks=False):
        shutil.rmtree(entry.path, ignore_errors=True)
    else:
        with suppress(OSError):
            os.unlink(entry.path)


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
