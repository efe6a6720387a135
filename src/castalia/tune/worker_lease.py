"""Who runs a trial, whether that process still lives, and the beat by which others know.

A trial belongs to the worker that holds it until the worker ends: its process is gone, or it has
not beaten for a minute. Of the same machine the first is known at once, of others the second.
"""

from __future__ import annotations

import os
import socket
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from castalia.tune.trial_record import Trial

__all__ = ["BEAT", "STALE", "Heartbeat", "has_lapsed", "worker_name"]

BEAT = 10.0  # seconds between two beats
STALE = 60.0  # seconds without one after which a worker counts as dead


def worker_name() -> str:
    """Name this process and this call: machine, process, its start, and a word of chance."""
    pid = os.getpid()
    return f"{socket.gethostname()}:{pid}:{_started(pid)}:{uuid.uuid4().hex[:8]}"


def has_lapsed(trial: Trial, now: float | None = None) -> bool:
    """Say whether another worker may take a running trial over."""
    now = time.time() if now is None else now
    return not trial.holder or now - trial.beat > STALE or _is_gone(trial.holder)


def _is_gone(holder: str) -> bool:
    """Say whether the process is known to be gone; of other machines one cannot know."""
    host, pid, started, _ = holder.rsplit(":", 3)
    if host != socket.gethostname():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return _started(int(pid)) != started  # the number was given to another process


def _started(pid: int) -> str:
    """Return when a process started, in ticks since the machine did; empty where none can say."""
    with suppress(OSError, IndexError):
        state, *rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "ended" if state in "ZX" else rest[18]  # a zombie has a number still
    return ""


class Heartbeat:
    """Calls a function every few seconds until its block ends.

    Parameters
    ----------
    beat
        What to call; an error is passed over, since a missed beat does no harm.
    every
        Seconds between two calls.

    Examples
    --------
    >>> calls = []
    >>> with Heartbeat(lambda: calls.append(1), every=0.001):
    ...     while not calls:
    ...         time.sleep(0.001)
    """

    def __init__(self, beat: Callable[[], None], every: float = BEAT) -> None:
        self.beat, self.every = beat, every
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        while not self._end.wait(self.every):
            with suppress(Exception):
                self.beat()

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()
