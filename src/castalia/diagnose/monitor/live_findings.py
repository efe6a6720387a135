"""Findings while the training runs, as soon as they are certain."""

from __future__ import annotations

import time
from collections.abc import Callable

from castalia.diagnose.diagnosis_record import DiagnosisRecord
from castalia.diagnose.finding_record import Finding

__all__ = ["LiveFindings"]

SHARE = 0.02  # of the training's time that judging may take
SURE = 0.85  # confidence
TWICE = 2  # judgements in a row that must agree


class LiveFindings:
    """Judges a training at some of its measured steps, and reports each certain error once.

    An error is certain when two judgements in a row make it, or one after the loss is NaN.

    Parameters
    ----------
    report
        Called with a finding. If it raises, it is not called again and the training goes on.
    clock
        Seconds that this thread has worked.
    """

    def __init__(
        self,
        report: Callable[[Finding], object],
        clock: Callable[[], float] = time.thread_time,
    ) -> None:
        self.report, self.clock = report, clock
        self.fault: Exception | None = None  # what the listener raised
        self._began = clock()
        self._spent, self._cost = 0.0, 0.02  # seconds of all judgements, and of the next
        self._seen: dict[str, int] = {}  # code: judgements in a row
        self._reported: set[str] = set()

    def look(self, judged: Callable[[], DiagnosisRecord], broken: bool) -> None:
        """Judge after a measured step, if it is time; at once when the loss is no longer finite.

        Parameters
        ----------
        judged
            Returns the diagnosis of what was seen so far.
        broken
            Whether a loss was not finite.
        """
        urgent = broken and not self._reported  # nothing is lost any more by judging
        if self.fault or not (urgent or self._is_time()):
            return
        start = self.clock()
        found = {f.code: f for f in judged() if f.severity == "error" and f.confidence >= SURE}
        self._cost = self.clock() - start
        self._spent += self._cost
        self._seen = {code: self._seen.get(code, 0) + 1 for code in found}
        for code, times in self._seen.items():
            if (broken or times >= TWICE) and code not in self._reported:
                self._reported.add(code)
                self._tell(found[code])

    def _is_time(self) -> bool:
        return self._spent + self._cost <= SHARE * (self.clock() - self._began)

    def _tell(self, found: Finding) -> None:
        try:
            self.report(found)
        except Exception as error:  # the training is the user's: it never stops for a listener
            self.fault = error
