"""CST105: NaN and infinity."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from castalia.diagnose.finding_record import Evidence, Finding, finding
from castalia.diagnose.rules.case import Case
from castalia.utils.text import number

__all__ = ["not_a_number"]

REMEDIES = {
    "log of 0": "Use a loss from logits (log_softmax, BCEWithLogitsLoss) or clamp before log.",
    "square root at 0": "Add a small number under the root: sqrt(x + 1e-8).",
    "division by 0": "Add a small number to the divisor, or mask the rows where it is 0.",
    "norm of a zero vector": "Add a small number: sqrt(x.square().sum() + 1e-8).",
    "overflow of exp": "Clamp the argument of exp, or work with logarithms (logsumexp).",
    "inverse square root of 0": "Add a small number under the root.",
    "power of 0": "Clamp the base away from 0.",
}


def not_a_number(case: Case) -> Iterator[Finding]:
    """NaN or infinity in the loss, the gradients, the parameters or the data."""
    inputs, targets = case.gathered("inputs"), case.targets
    bad_inputs, bad_targets = _bad(inputs), _bad(targets)
    step = _first_bad(case)
    gradient = _bad_gradient(case)
    broken = case.record.final.get("broken_parameters", 0)
    if step is None and gradient is None and not broken:
        return
    if bad_inputs or bad_targets:
        which = "inputs" if bad_inputs else "targets"
        share = bad_inputs or bad_targets
        origin = f"the {which} hold NaN or infinity"
        cure = f"Drop or impute the missing {which}."
        evidence = Evidence(f"share of {which} that are NaN or infinite", share, 0.0)
        sure = 0.97
    else:
        origin, cure = _origin(case)
        at = case.steps if step is None else step
        evidence, sure = Evidence("step of the first loss that is NaN or infinite", at), 0.85
    before = case.finite[-1] if len(case.finite) else np.nan
    was = f", after {number(before, 3)}" if np.isfinite(before) else ""
    where = gradient if step is None else None
    first = (
        f"The loss is NaN or infinite from step {step} on{was}"
        if step is not None
        else "A gradient is NaN or infinite"
    )
    said = f"{first}: {origin}."
    yield finding("CST105", "error", sure, said, cure, evidence, where=where, step=step)


def _origin(case: Case) -> tuple[str, str]:
    suspects = [s for look in case.looks[-3:] for s in look.suspects]
    for words, cure in REMEDIES.items():
        found = next((s for s in suspects if s.startswith(words)), None)
        if found is not None:
            return found, cure
    return "the weights overflowed", "Lower the learning rate, or clip the gradients."


def _bad(values: np.ndarray | None) -> float:
    if values is None or values.dtype.kind != "f":
        return 0.0
    return float((~np.isfinite(values)).any(axis=tuple(range(1, values.ndim))).mean())


def _first_bad(case: Case) -> int | None:
    """First step whose loss is infinite, or no number like all later ones."""
    infinite = np.isinf(case.losses)
    if infinite.any():
        return int(np.flatnonzero(infinite)[0])
    if not case.lost.any() or not case.lost[-1]:
        return None
    return 0 if case.lost.all() else len(case.lost) - int(np.argmin(case.lost[::-1]))


def _bad_gradient(case: Case) -> str | None:
    """A parameter whose gradient is infinite, unless the optimizer was given a finite one."""
    for look in case.looks:
        for name, norm in look.gradients.items():
            given = look.applied.get(name, np.nan)
            if norm is not None and not np.isfinite(norm) and not np.isfinite(given):
                return name
    return None
