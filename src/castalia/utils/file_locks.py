"""Locks that processes respect among each other and that end with the process that holds them.

They are those of ``flock``, which the system drops when a process ends, however it ends. The owner
of a folder also writes its host, process number and start into the file: for people, and for file
systems without locks, where that record decides.
"""

from __future__ import annotations

import itertools
import json
import os
import socket
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

try:
    import fcntl
except ImportError:  # not on this system
    fcntl = None  # type: ignore[assignment]

from castalia.errors import WriteFailed

__all__ = ["FolderLock", "held", "is_held"]

_numbers = itertools.count()
_PATIENCE = 0.25  # seconds to try again: who only asks has a lock for microseconds


class _Owned(NamedTuple):
    handle: int
    thread: int
    number: int  # of the lock in this process: handles are used again


_owned: dict[str, _Owned] = {}  # locks of this process, by path


class FolderLock:
    """The right of one process to write in a folder, kept in a file ``.lock`` inside it.

    Parameters
    ----------
    folder
        An existing folder.

    Examples
    --------
    >>> import tempfile
    >>> lock = FolderLock(tempfile.mkdtemp())
    >>> lock.acquire("Training")
    >>> lock.held
    True
    >>> lock.release()
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.path = self.folder.absolute() / ".lock"
        self._got: _Owned | None = None

    @property
    def mine(self) -> bool:
        """Whether this process got the lock through this object."""
        return self._got is not None and _owned.get(str(self.path)) == self._got

    @property
    def held(self) -> bool:
        """Whether a living process has the lock."""
        return str(self.path) in _owned or (self.path.exists() and is_held(self.path))

    @property
    def holder(self) -> dict[str, Any] | None:
        """Host, process number and start of who has the lock; None where nobody has it."""
        return _record(self.path) if self.held else None

    def acquire(self, owner: str) -> None:
        """Take the lock, also over from a process that ended without giving it back.

        Raises
        ------
        WriteFailed
            When a living process has it; the message begins with ``owner``.
        """
        key, thread, deadline = str(self.path), threading.get_ident(), time.monotonic() + _PATIENCE
        if key in _owned and _owned[key].thread == thread:
            _drop(key, _owned[key])  # what it was for is over: this thread is here again
        while key in _owned or (handle := _locked(self.path)) is None:
            if time.monotonic() > deadline:
                raise WriteFailed(self._refusal(owner))
            time.sleep(0.01)
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps(_this_process()).encode(), 0)
        self._got = _owned[key] = _Owned(handle, thread, next(_numbers))
        weakref.finalize(self, _drop, key, self._got)

    def release(self) -> None:
        """Give the lock back; nothing happens where this object has none."""
        if self.mine:
            with suppress(OSError):
                os.unlink(self.path)
            _drop(str(self.path), _owned[str(self.path)])

    def _refusal(self, owner: str) -> str:
        found = _record(self.path)
        who = "process {pid} on {host}, started {started}".format(**found) if found else "another"
        if str(self.path) in _owned:
            who = "another thread of this process"
        return (
            f"{owner}: `{self.folder}` is in use by {who}; nothing in it was changed. Wait for it, "
            "stop it, or choose another folder."
        )


@contextmanager
def held(path: str | os.PathLike[str]) -> Iterator[None]:
    """Hold the lock of a file or folder, so that nobody takes it for a leftover."""
    handle = os.open(path, os.O_RDONLY)
    try:
        _try(handle)
        yield
    finally:
        os.close(handle)


def is_held(path: str | os.PathLike[str]) -> bool:
    """Say whether a living process holds the lock of a file or folder."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))  # a pipe would wait
    except OSError:
        return False
    try:
        free = _try(handle, shared=True)
        return _lives(_record(path)) if free is None else not free
    finally:
        os.close(handle)


def _try(handle: int, *, shared: bool = False) -> bool | None:
    """Lock an open file if nobody else has it; None where there are no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _locked(path: Path) -> int | None:
    """Open and lock a file, made where it is missing; None where another process has it."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        got = _try(handle)
        if got is False or (got is None and _lives(_record(path))):
            os.close(handle)
            return None
        with suppress(OSError):
            if os.path.samestat(os.fstat(handle), os.stat(path)):
                return handle
        os.close(handle)  # its owner has just deleted it


def _drop(key: str, got: _Owned) -> None:
    if _owned.get(key) == got:
        del _owned[key]
        os.close(got.handle)


def _this_process() -> dict[str, Any]:
    pid, now = os.getpid(), time.strftime("%Y-%m-%d %H:%M:%S")
    return {"host": socket.gethostname(), "pid": pid, "started": now, "birth": _birth(pid)}


def _record(path: str | os.PathLike[str]) -> dict[str, Any] | None:
    """Return what the owner of a lock wrote about itself, or None."""
    try:
        found = json.loads(Path(path).read_bytes())
        return {key: found[key] for key in ("host", "pid", "started", "birth")}
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _lives(owner: dict[str, Any] | None) -> bool:
    """Say whether the owner of a record is alive, as far as can be known from here."""
    if owner is None:
        return False
    return owner["host"] != socket.gethostname() or _birth(owner["pid"]) == owner["birth"]


def _birth(pid: Any) -> str:
    """Return when a process began, in ticks since the system did; nothing where it is unknown."""
    with suppress(OSError, LookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    return ""


def _forget() -> None:
    """Leave the locks to the process this one was forked from."""
    for got in _owned.values():
        with suppress(OSError):
            os.close(got.handle)
    _owned.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
