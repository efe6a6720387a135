"""``castalia doctor --live``: a watched script as a run, and the studio's page of it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import typer

from castalia.train.script_log import FOLDER, SHOWN, open_log

if TYPE_CHECKING:
    from castalia.diagnose.diagnosis import Diagnosis
    from castalia.diagnose.finding_record import Finding
    from castalia.diagnose.record.training_record import Record

__all__ = ["LivePage"]


class LivePage:
    """Writes what a script trains into a run while it trains, and opens the studio on that run.

    The script's own ``castalia.log`` goes to the same run.

    Parameters
    ----------
    subject
        Name of the script.
    command
        What was typed.
    """

    def __init__(self, subject: str, command: str) -> None:
        path = Path(FOLDER) / Path(subject).stem
        self.log = open_log(path, {"model": subject, "command": command})
        self.found: list[Finding] = []
        self._subject, self._next = subject, 0.0
        self._known: list[Record] = []
        self._written: list[tuple[int, int, int]] = []  # losses, validations and looks of each
        self._studio = subprocess.Popen(
            [
                *(sys.executable, "-P", "-m", "castalia.studio"),
                *(str(self.log.store.root), self.log.run.name),
            ],
            stdin=subprocess.PIPE,  # closed when this process ends, however it ends
            stdout=sys.__stderr__,
            start_new_session=True,  # Ctrl-C is for the script
        )

    def beat(self, records: Sequence[Record]) -> None:
        """Write what is new, once a second."""
        if time.monotonic() >= self._next:
            self._write(records)
            self._next = time.monotonic() + SHOWN

    def finding(self, found: Finding) -> None:
        """Show an error as soon as it is certain."""
        from castalia.diagnose import Diagnosis

        self.found.append(found)
        self._diagnosed(Diagnosis(tuple(self.found), subject=self._subject))

    def end(self, records: Sequence[Record], found: Diagnosis | None, code: int) -> None:
        """Write the rest and the whole diagnosis; leave the page to somebody at a terminal."""
        self._write(records)
        if found is not None:
            self._diagnosed(found)
            found.report(self.log.run.folder / "report.html")
        self.log.close("failed" if code else "finished")
        if sys.__stdin__ is not None and sys.__stdin__.isatty():
            typer.echo("castalia doctor: the page stays open until Ctrl-C.", file=sys.__stderr__)
            with suppress(KeyboardInterrupt):
                self._studio.wait()
        self._studio.stdin.close()  # type: ignore[union-attr]
        with suppress(KeyboardInterrupt):
            self._studio.wait()

    def _diagnosed(self, found: Diagnosis) -> None:
        from castalia.diagnose.estimators import DIAGNOSIS
        from castalia.utils.atomic_files import atomic_write

        atomic_write(self.log.run.folder / DIAGNOSIS, found.to_json())
        for each in found.findings:
            self.log.run.add_finding(each.to_dict())

    def _write(self, records: Sequence[Record]) -> None:
        run = self.log.run
        for record in records:
            if not any(record is known for known in self._known):
                self._known.append(record)
                self._written.append((0, 0, 0))
        for place, record in enumerate(self._known):
            prefix = f"{record.module}-{place + 1}/" if place else ""
            for step, key, value in _points(record, *self._written[place]):
                run.log(step, 0, {prefix + key: value})
            losses = len(record.losses) - _waiting(record.losses)
            self._written[place] = (losses, len(record.evaluations), len(record.looks))
        run.flush()


def _waiting(losses: Sequence[float]) -> int:
    """Return how many losses at the end are not known yet."""
    known = np.flatnonzero(~np.isnan(losses[-1024:]))
    return int(min(len(losses), 1024) - (known[-1] + 1 if known.size else 0))


def _points(
    record: Record, losses: int, evaluations: int, looks: int
) -> Iterator[tuple[int, str, float]]:
    """Yield step, name and value of what came since so many losses, validations and looks."""
    from castalia.diagnose.record.layer_curves import layer_points

    for step, loss in enumerate(record.losses[losses:], start=losses):
        if loss == loss:
            yield step, "batch_loss", loss
    for each in record.evaluations[evaluations:]:
        if each.loss is not None:
            yield each.step, "validation_loss", each.loss
    for look in record.looks[looks:]:
        yield look.step, "learning_rate", look.lr
        yield from ((look.step, name, value) for name, value in layer_points(look))
