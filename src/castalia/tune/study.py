"""The record of a search: which trials there are, who runs them, and what came of them.

With a database it survives the process: every finished fold is written down at once, and a trial
whose worker is gone is taken over with the folds that were finished.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from castalia.tune.proposals import Proposals
from castalia.tune.trial_record import COMPLETE, RUNNING, Trial
from castalia.tune.trial_table import TrialTable
from castalia.tune.worker_lease import Heartbeat, has_lapsed, worker_name

__all__ = ["Study", "TakenOver"]


class TakenOver(Exception):
    """Another worker holds the trial now, since this one gave no sign of life for too long."""


class Study:
    """Hands out trials to run and keeps what came of them.

    Parameters
    ----------
    proposals
        Which settings a trial gets.
    table
        Where to keep the trials; None keeps them in memory.
    together
        Trials that run at the same time. What is proposed depends on the rounds before, whatever
        ends first in this one.
    apart
        Whether trials run where the table cannot be reached: workers then return what came of
        them, and this process alone writes it down.
    """

    def __init__(
        self,
        proposals: Proposals,
        table: TrialTable | None = None,
        together: int = 1,
        *,
        apart: bool = False,
    ) -> None:
        self.proposals, self.table, self.together = proposals, table, together
        self.apart = apart
        self.worker = worker_name()
        self.known: dict[int, Trial] = {}
        self.refresh()

    def __getstate__(self) -> dict[str, Any]:
        """Return what travels to a worker."""
        return {**vars(self), "table": None} if self.apart else vars(self)

    def receive(self, found: Iterable[Trial | None]) -> None:
        """Take in what workers return, each as it comes, or what they wrote down."""
        for trial in found:
            if self.apart and trial is not None:
                self.keep(trial)
        self.refresh()

    def refresh(self) -> None:
        """Read what other workers have done; trials that ended do not change."""
        if self.table is None:
            return
        first = 0
        while first in self.known and self.known[first].ended:
            first += 1
        for trial in self.table.read(first):
            self.known[trial.number] = trial

    def ended(self) -> list[Trial]:
        """Return the trials that ended, whole, given up or by an error, in order."""
        return [trial for _, trial in sorted(self.known.items()) if trial.ended]

    def complete(self) -> list[Trial]:
        """Return the trials that were scored on every fold."""
        return [trial for trial in self.ended() if trial.state == COMPLETE]

    def waits(self, budget: int) -> bool:
        """Say whether trials below a number are still to end, here or elsewhere."""
        return any(n not in self.known or not self.known[n].ended for n in range(budget))

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Beat while trials run, and let go of those that an error leaves."""
        table = self.table
        if table is None:
            yield
            return
        try:
            with Heartbeat(lambda: table.beat(self.worker)):
                yield
        finally:
            table.release(self.worker)
            table.close()

    def take(self, budget: int) -> Trial | None:
        """Return the first trial below a number that nobody runs; None: there is none now."""
        self.refresh()
        for number in range(budget):
            trial = self._begin(number) if number not in self.known else self._take_over(number)
            if trial is not None:
                self.known[number] = trial
                return trial
        return None

    def _begin(self, number: int) -> Trial | None:
        params = self.proposals.point(number, self._before(number))
        trial = Trial(number, params, holder=self.worker, beat=time.time())
        return trial if self.table is None or self.table.insert(trial) else None

    def _take_over(self, number: int) -> Trial | None:
        trial = self.known[number]
        if self.table is None or trial.ended or trial.holder == self.worker:
            return None
        if has_lapsed(trial) and self.table.take_over(trial, self.worker):
            return trial
        return None

    def _before(self, number: int) -> list[Trial]:
        """Return what a proposal may know: earlier rounds, and what else this one tries."""
        if not self.proposals.learns:
            return []
        start = number - number % self.together
        earlier = [self.known[n] for n in sorted(self.known) if n < number]
        return [t if t.number < start else replace(t, state=RUNNING) for t in earlier]

    def rivals(self, trial: Trial) -> list[Trial]:
        """Return the complete trials of earlier rounds."""
        start = trial.number - trial.number % self.together
        return [t for t in self.complete() if t.number < start]

    def keep(self, trial: Trial) -> None:
        """Write down the folds done so far."""
        if self.table is not None and not self.table.write(trial):
            raise TakenOver
        self.known[trial.number] = trial

    def close(self, trial: Trial, state: str, reason: str = "") -> None:
        """Write down how a trial ended."""
        self.keep(replace(trial, state=state, reason=reason))

    def settings(self, trial: Trial) -> dict[str, Any]:
        """Return the parameters of a trial as the estimator wants them."""
        return self.proposals.settings(trial)
