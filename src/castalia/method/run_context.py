"""What the steps of a fit share: the run's folder, finished stages, the narrator, the time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from castalia.method.fit_result import CONTENDERS
from castalia.method.narrator import Narrator
from castalia.method.run_stages import Stages
from castalia.train.runs import Run, RunStore
from castalia.utils.held_signals import uninterrupted

__all__ = ["RunContext", "opened_run"]


@dataclass(frozen=True)
class RunContext:
    """What the steps of one run share.

    Attributes
    ----------
    folder
        Of the run.
    stages
        Results that are kept, so that an interrupted fit continues where it stopped.
    narrator
        Receives every event.
    time_limit
        Seconds for all trainings together; None: no limit.
    """

    folder: Path
    stages: Stages
    narrator: Narrator
    time_limit: float | None = None
    began: float = field(default_factory=time.monotonic)

    def contender(self, key: str) -> Path:
        """Return the folder of a saved contender."""
        return self.folder / CONTENDERS / key

    @property
    def late(self) -> bool:
        """Whether the time is up."""
        return self.time_limit is not None and time.monotonic() - self.began > self.time_limit

    def share(self, left: int) -> float | None:
        """Return the seconds that one of the trainings that are left may take."""
        if self.time_limit is None:
            return None
        return max((self.time_limit - (time.monotonic() - self.began)) / left, 0.0)


@contextmanager
def opened_run(folder: Path, fingerprint: str, config: Mapping[str, Any]) -> Iterator[Run]:
    """Open a run for some work; where the work ends early, the run's status says how."""
    with RunStore(folder.parent) as store:
        record = store.open_run(folder.name, fingerprint, config)
        try:
            yield record
        except BaseException as error:
            with uninterrupted():
                record.finish("interrupted" if isinstance(error, KeyboardInterrupt) else "failed")
            raise
