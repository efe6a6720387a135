"""Ctrl-C that waits until something short is done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["uninterrupted"]


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Put off Ctrl-C and SIGTERM until the block is done; in other threads than the main one none.

    Examples
    --------
    >>> with uninterrupted():
    ...     "written"
    'written'
    """
    caught: list[tuple[Any, ...]] = []
    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            if callable(signal.getsignal(number)):  # what nobody handles ends the process at once
                before[number] = signal.signal(number, lambda *event: caught.append(event))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for event in caught[:1]:
            before[event[0]](*event)  # type: ignore[operator, misc]
