"""Learning curve over the number of rows, which says whether more of them would help."""

from __future__ import annotations

import numpy as np
import torch

from castalia.diagnose.examination.examination_subject import Subject
from castalia.diagnose.examination.measures import difference, row_errors
from castalia.diagnose.examination.outcomes import Outcome, saw, skipped
from castalia.diagnose.examination.table_models import Table, linear, one_thread
from castalia.diagnose.examination.trials import seconds_a_step
from castalia.diagnose.finding_record import Evidence, Finding, finding
from castalia.diagnose.thresholds import limit
from castalia.utils.text import number

__all__ = ["more_data_probe"]

NAME = "more-data-test"
PARTS = (0.25, 0.5, 1.0)
STEPS, LEAST_STEPS = 400, 120
LEAST_ROWS = 16


def more_data_probe(subject: Subject) -> Outcome:
    """Train on a quarter, a half and all of the rows; compare errors on the validation rows."""
    if subject.held is None:
        return skipped(NAME, "without validation data, too little data (CST207) cannot be found.")
    if not subject.rows.complete:
        return skipped(NAME, f"there are more training rows than the {len(subject.x):,} sampled.")
    if subject.labels is None or len(subject.x) < LEAST_ROWS or not subject.trainable:
        return skipped(NAME, f"needs rows with errors of their own (task {subject.task}).")
    steps = _steps(subject)
    curve = [_at(subject, part, steps) for part in PARTS]
    if any(point is None for point in curve):
        return skipped(NAME, "the outputs cannot be read as predictions.")
    held = [point[0] for point in curve if point is not None]
    fitted = float(curve[-1][1])  # type: ignore[index]
    rates = [float(errors.mean()) for errors in held]
    gain, sure = difference(held[1], held[2])
    numbers = {
        "rows": [int(part * len(subject.x)) for part in PARTS],
        "validation error": rates,
        "training error": fitted,
        "model": "network" if steps else "linear",
    }
    falling = (
        rates[0] > rates[1] > rates[2]
        and gain > max(limit("examine.falling_by"), limit("examine.still_falling") * rates[1])
        and sure > 2
    )
    gap = rates[2] - fitted
    if not falling or gap < limit("examine.data_gap") or not np.isfinite(rates).all():
        return saw(NAME, numbers)
    return saw(NAME, numbers, [_too_little(len(subject.x), rates, gap)])


def _steps(subject: Subject) -> int:
    """Return the steps that the time allows each training, 0 where a linear model must stand in."""
    copy = subject.start()
    with subject.quick(copy, subject.batch_size):
        cost = seconds_a_step(copy, subject.x, subject.y, subject.batch_size, subject.clock)
    steps = min(STEPS, int(subject.clock.left / (len(PARTS) * max(cost, 1e-6))))
    return steps if steps >= LEAST_STEPS else 0


def _at(subject: Subject, part: float, steps: int) -> tuple[np.ndarray, float] | None:
    """Return validation errors by row and the training error, after training on a part."""
    order = np.random.default_rng(subject.seed).permutation(len(subject.x))
    chosen = order[: max(4, int(part * len(order)))]
    if steps == 0:
        return _linear(subject, chosen)
    index = torch.from_numpy(chosen).to(subject.device)
    copy, x, y = subject.start(), subject.x[index], subject.y[index]
    subject.train(copy, steps, x=x, y=y, batch_size=min(subject.batch_size, len(x)))
    held, fitted = subject.errors(copy, subject.vx, subject.vy), subject.errors(copy, x, y)
    return None if held is None or fitted is None else (held, float(fitted.mean()))


@one_thread()
def _linear(subject: Subject, chosen: np.ndarray) -> tuple[np.ndarray, float] | None:
    X, y, task = subject.table[chosen], np.asarray(subject.labels)[chosen], str(subject.task)
    if task != "regression" and len(np.unique(y)) < 2:
        return None
    table = Table(X, subject.seed)
    model = linear(task).fit(table(X), y)
    known = np.asarray(subject.held_labels)
    held = row_errors(task, known, model.predict(table(np.asarray(subject.held_table))))
    fitted = row_errors(task, y, model.predict(table(X)))
    if held is None or fitted is None:
        return None
    return held / subject.unit, float(fitted.mean()) / subject.unit


def _too_little(rows: int, rates: list[float], gap: float) -> Finding:
    half, full = rates[1], rates[2]
    return finding(
        "CST207",
        "warning",
        0.75,
        f"From {rows // 2:,} to {rows:,} rows the validation error falls from {number(half, 2)} "
        f"to {number(full, 2)}, and the training error is far below it: more rows would help.",
        f"Gather more than {rows:,} rows, augment them, or regularise.",
        Evidence(
            "relative fall from half of the rows to all",
            1 - full / half,
            limit("examine.still_falling"),
        ),
        Evidence("validation error less training error", gap, limit("examine.data_gap")),
    )
