"""CST114: a loss so curved in some directions that plain descent zigzags."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from castalia.diagnose.calibration import limit
from castalia.diagnose.findings import Evidence, Finding, Remedy, finding
from castalia.diagnose.rules.case import Case

__all__ = ["zigzag"]


def zigzag(case: Case) -> Iterator[Finding]:
    """Successive gradients that point against each other while the loss creeps."""
    optimizer = case.optimizer
    if optimizer is None or optimizer.kind != "SGD" or optimizer.momentum > 0 or case.broken:
        return
    if case.adversarial or not np.isfinite(case.turning) or not len(case.finite):
        return
    creeps = case.final < case.initial and (
        not np.isfinite(case.learnt) or 0.02 < case.learnt < 0.95
    )
    if case.turning < limit("turning.zigzag") and creeps:
        yield finding(
            "CST114",
            "warning",
            0.75,
            "Plain descent goes back and forth across a valley while it creeps along it.",
            Remedy(
                "Use momentum 0.9 or Adam, and normalise the inputs.",
                {"training__optimizer": "adam"},
            ),
            Evidence(
                "mean cosine of successive gradients",
                case.turning,
                limit("turning.zigzag"),
                above=False,
            ),
        )
