"""Files that are either whole or not there."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from castalia.errors import CastaliaError, WriteFailed

__all__ = ["atomic_folder", "atomic_write", "digest", "sync_folder", "writing"]


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


def atomic_write(path: str | os.PathLike[str], data: bytes | str) -> Path:
    """Write a file aside, force it to disk and rename it into place.

    Until the rename, an older file of that name stays as it was; a failure leaves no trace.
    """
    path = Path(path)
    raw = data.encode() if isinstance(data, str) else data
    handle, aside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(aside)
        raise
    sync_folder(path.parent)
    return path


@contextmanager
def atomic_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Fill a folder aside and swap it in when everything in it is on disk."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    old = aside.with_name(aside.name + ".old")
    try:
        yield aside
        for file in aside.rglob("*"):
            if file.is_file():
                with open(file, "rb") as handle:
                    os.fsync(handle.fileno())
        sync_folder(aside)
        if path.exists():
            os.replace(path, old)
        try:
            os.replace(aside, path)
        except BaseException:
            if old.exists():
                os.replace(old, path)
            raise
        sync_folder(path.parent)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
        if path.exists():
            shutil.rmtree(old, ignore_errors=True)


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
