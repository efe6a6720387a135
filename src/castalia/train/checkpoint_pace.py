"""When the next checkpoint is due, where the user set no number of steps."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["CheckpointPace"]

SECONDS = 10.0  # of training that a kill costs at most
SHARE = 0.02  # of the time that writing may take


class CheckpointPace:
    """Paces checkpoints by the clock: ten seconds apart, further where writing one is slow.

    A training of seconds then writes one file at its end, and an epoch of hours hundreds.

    Parameters
    ----------
    clock
        Seconds that pass.

    Examples
    --------
    >>> now = iter([0.0, 9.0, 10.0, 10.0, 11.0, 40.0, 61.0]).__next__
    >>> pace = CheckpointPace(now)
    >>> pace.is_due, pace.is_due
    (False, True)
    >>> with pace.writing():  # takes a second, so the next one waits for fifty
    ...     pass
    >>> pace.is_due, pace.is_due
    (False, True)
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._wait = clock, SECONDS
        self._last = clock()

    @property
    def is_due(self) -> bool:
        """Whether it is time to write."""
        return self._clock() - self._last >= self._wait

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Measure how long a checkpoint takes; the next one is counted from its end."""
        began = self._clock()
        yield
        self._last = self._clock()
        self._wait = max(SECONDS, (self._last - began) / SHARE)
