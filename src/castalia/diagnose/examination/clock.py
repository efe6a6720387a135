"""Time that is shared out: each probe gets a part of what is left."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Clock"]


class Clock:
    """Counts down some seconds.

    Parameters
    ----------
    seconds
        Until the end.
    """

    def __init__(self, seconds: float) -> None:
        self.end = self.until = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds left to the present share."""
        return self.until - time.monotonic()

    @property
    def over(self) -> bool:
        """Whether the present share is spent."""
        return self.left <= 0

    @contextmanager
    def share(self, part: float) -> Iterator[None]:
        """Give what happens inside a part of the seconds that are left."""
        before, now = self.until, time.monotonic()
        self.until = now + max(0.0, part * (before - now))
        try:
            yield
        finally:
            self.until = before
