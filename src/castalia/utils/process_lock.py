"""The lock of what torch has once in a process: its generator and its switches.

Who seeds torch's generator, turns oneDNN off or changes the default dtype holds this lock, so that
trainings in several threads come one after the other and end as each would alone.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["exclusive", "is_forked", "lent"]

_lock = threading.RLock()
_own = threading.local()  # how often this thread holds it
_forked = False


@contextmanager
def exclusive(*, wait: bool = True) -> Iterator[bool]:
    """Hold the lock; yield whether it is held.

    Parameters
    ----------
    wait
        Whether to wait for a thread that has it; else the block runs without the lock, and must
        leave the switches as they are.

    Examples
    --------
    >>> with exclusive() as held, exclusive(wait=False) as again:
    ...     held, again
    (True, True)
    """
    lock = _lock
    held = lock.acquire(blocking=wait)
    before = _depth()
    _own.depth = before + held
    try:
        yield held
    finally:
        _own.depth = before
        if held:
            lock.release()


@contextmanager
def lent() -> Iterator[None]:
    """Let other threads have the lock while this one waits for them.

    Examples
    --------
    >>> with exclusive(), lent():
    ...     from concurrent.futures import ThreadPoolExecutor
    ...     with ThreadPoolExecutor(1) as pool:
    ...         pool.submit(lambda: exclusive(wait=False).__enter__()).result()
    True
    """
    lock, depth = _lock, _depth()
    for _ in range(depth):
        lock.release()
    try:
        yield
    finally:
        for _ in range(depth):
            lock.acquire()


def _depth() -> int:
    return getattr(_own, "depth", 0)


def is_forked() -> bool:
    """Say whether this process was forked from one that had loaded the library.

    OpenMP's threads do not come along, and torch waits for them for ever when it shares out work.
    """
    return _forked


def _renew() -> None:
    """Give a forked process its own lock: the thread that held the old one is not in it."""
    global _lock, _forked
    _lock, _forked = threading.RLock(), True
    _own.depth = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
