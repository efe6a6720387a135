"""One trial of a search: its settings, what each fold gave, and how it ended."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["COMPLETE", "FAIL", "PRUNED", "RUNNING", "Trial"]

RUNNING, COMPLETE, PRUNED, FAIL = "running", "complete", "pruned", "fail"


@dataclass
class Trial:
    """The record of a trial.

    Attributes
    ----------
    number
        Its place in the search, from 0; of a grid, the point.
    params
        Settings as the sampler sees them: of a choice, the position.
    folds
        What each finished fold gave, in order: scores by metric, ``fit_time`` and ``score_time``.
    state
        ``"running"``, ``"complete"``, ``"pruned"`` or ``"fail"``.
    reason
        Why it failed.
    holder, beat
        Which worker runs it, and when that worker was last known to live (seconds since 1970).
    """

    number: int
    params: dict[str, Any]
    folds: list[dict[str, float]] = field(default_factory=list)
    state: str = RUNNING
    reason: str = ""
    holder: str = ""
    beat: float = 0.0

    @property
    def ended(self) -> bool:
        """Whether nothing is left to do."""
        return self.state != RUNNING

    def scores(self, metric: str) -> list[float]:
        """Return one metric of the finished folds."""
        return [fold[metric] for fold in self.folds]

    def mean(self, metric: str) -> float:
        """Return the mean of one metric over the finished folds."""
        return float(np.mean(self.scores(metric)))

    def text(self) -> str:
        """Write down what does not change hands: settings, folds and reason."""
        return json.dumps({"params": self.params, "folds": self.folds, "reason": self.reason})

    @classmethod
    def read(cls, number: int, state: str, holder: str, beat: float, text: str) -> Trial:
        """Return the trial of a row of the database."""
        return cls(number, state=state, holder=holder, beat=beat, **json.loads(text))
