"""CST405: confidence far from accuracy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from castalia.diagnose.finding_record import Evidence, Finding, finding
from castalia.diagnose.rules.case import Case
from castalia.diagnose.thresholds import limit
from castalia.utils.text import number

__all__ = ["miscalibrated"]


def miscalibrated(case: Case) -> Iterator[Finding]:
    """Confidence on validation rows that differs from the share that is right."""
    found = case.probabilities(case.record.validation, 4)
    if found is None or len(found[1]) < 60 or found[0].shape[1] < 2:
        return
    if case.stuck and not case.head.weighted:  # a weighted loss may end above that of guessing
        return
    p, y = found
    sure, right = p.max(axis=1), p.argmax(axis=1) == y
    gap = float(sure.mean() - right.mean())
    error = float(np.sqrt(right.mean() * (1 - right.mean()) / len(y)))
    bar = max(limit("calibration.error"), 3 * error)
    if gap < 0 and 0 < case.smoothing <= limit("smoothing.usual"):
        return  # it was taught not to be sure
    if abs(gap) > bar:
        which = "too sure" if gap > 0 else "not sure enough"
        before, after = case.level(0.6, 0.8), case.level(0.8, 1.0)
        grows = gap < 0 and (case.poor or after < limit("calibration.falling") * before)
        yield finding(
            "CST405",
            "info" if grows else "warning",  # with more steps it grows surer by itself
            0.75,
            f"On validation rows the network is {which}: confidence "
            f"{number(float(sure.mean()), 3)}, accuracy {number(float(right.mean()), 3)}.",
            "Divide the logits by a temperature fitted on validation rows.",
            Evidence("confidence minus accuracy", gap, bar if gap > 0 else -bar, above=gap > 0),
        )
