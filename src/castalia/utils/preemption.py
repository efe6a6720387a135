"""SIGTERM, by which schedulers take a machine back: time to save, and a code to be started again.

A process that ends so has the exit code 75, ``EX_TEMPFAIL`` of ``sysexits.h``: try again.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any, Self

__all__ = ["REQUEUE", "Preempted", "SigtermNotice", "preempt"]

REQUEUE = 75


class Preempted(KeyboardInterrupt, SystemExit):
    """SIGTERM ended the work; nobody need handle it, the process then ends with the code 75."""

    def __init__(self) -> None:
        super().__init__("SIGTERM")
        self.code = REQUEUE


def preempt(number: int = 0, frame: FrameType | None = None) -> None:
    """End what runs now; a handler of SIGTERM."""
    raise Preempted


class SigtermNotice:
    """Notes SIGTERM inside its block, for work that saves itself before it ends.

    Handlers of others stay in place, and a second SIGTERM ends the work at once.

    Parameters
    ----------
    wanted
        Whether to note it at all.

    Attributes
    ----------
    asked : bool
        Whether it came.

    Examples
    --------
    >>> with SigtermNotice() as notice:
    ...     notice.asked
    False
    """

    def __init__(self, wanted: bool = True) -> None:
        main = threading.current_thread() is threading.main_thread()
        self.asked, self._before = False, None  # type: bool, Any
        self._own = (
            wanted and main and signal.getsignal(signal.SIGTERM) in (signal.SIG_DFL, preempt)
        )

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise Preempted
        self.asked = True

    def __enter__(self) -> Self:
        if self._own:
            self._before = signal.signal(signal.SIGTERM, self._note)
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        if not self._own:
            return
        signal.signal(signal.SIGTERM, self._before)
        if self.asked and kind is None:  # the work was done before it could end early
            signal.raise_signal(signal.SIGTERM)
