"""CST406: outputs that do not depend on the input."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from castalia.diagnose.finding_record import Evidence, Finding, finding
from castalia.diagnose.rules.case import Case
from castalia.diagnose.thresholds import limit
from castalia.utils.text import number

__all__ = ["ignores_input"]


def ignores_input(case: Case) -> Iterator[Finding]:
    """Outputs that are the same for every row."""
    if case.broken or case.adversarial:
        return
    if case.unchanging > limit("inputs.same"):
        yield finding(
            "CST406",
            "error",
            0.9,
            f"{number(100 * case.unchanging, 3)} % of the input's numbers are the same in every "
            "row.",
            "Inspect the inputs as the network gets them: casts, masks and indices.",
            Evidence("share of inputs that never change", case.unchanging, limit("inputs.same")),
        )
        return
    spreads = [look.output_spread for look in case.looks if np.isfinite(look.output_spread)]
    if len(spreads) < 2:
        return
    reference = 1.0
    if case.head.loss in ("mse", "l1", "huber", "smooth_l1") and case.targets is not None:
        reference = max(
            float(case.targets.reshape(len(case.targets), -1).std(axis=0).mean()), 1e-12
        )
    spread = float(np.median(spreads[-3:])) / reference
    if spread < limit("outputs.same") and (case.stuck or not np.isfinite(case.learnt)):
        yield finding(
            "CST406",
            "warning",
            0.7,
            f"Outputs hardly differ from row to row (spread {number(spread, 2)}).",
            "See the other findings; without any, check that the input reaches the output.",
            Evidence("spread of outputs over rows", spread, limit("outputs.same"), above=False),
        )
