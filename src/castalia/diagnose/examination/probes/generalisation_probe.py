"""Training rows against validation rows: overfitting, and confidence against accuracy."""

from __future__ import annotations

import numpy as np

from castalia.diagnose.examination.baseline_errors import baselines
from castalia.diagnose.examination.examination_subject import Subject
from castalia.diagnose.examination.measures import probabilities, standard_error
from castalia.diagnose.examination.outcomes import Outcome, saw, skipped
from castalia.diagnose.examination.trials import batch_losses, forward
from castalia.diagnose.finding_record import Evidence, Finding, finding
from castalia.diagnose.thresholds import limit
from castalia.utils.text import number

__all__ = ["calibration_error", "generalisation"]

NAME = "generalisation"
BINS = 10
DRAWS = 200
LEAST_ROWS = 50


def generalisation(subject: Subject) -> Outcome:
    """Compare losses and errors of both sides, and confidence with accuracy."""
    if subject.vx is None or subject.vy is None:
        return skipped(NAME, "without validation data, CST401 and CST405 cannot be found.")
    if not subject.trainable and not subject.trained:
        return skipped(NAME, "the module cannot be run or has nothing to train.")
    if min(len(subject.x), len(subject.vx)) < 10:
        return skipped(NAME, "too few rows to tell a gap.")
    copy = subject.learned.copy
    a, b = batch_losses(copy, subject.x, subject.y), batch_losses(copy, subject.vx, subject.vy)
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return saw(NAME, {})
    numbers = {"training loss": float(a.mean()), "validation loss": float(b.mean())}
    findings = [_overfit(subject, a, b, numbers)]
    if subject.learned.own:
        findings.append(_calibration(subject, numbers))
    return saw(NAME, numbers, findings)


def _overfit(
    subject: Subject, a: np.ndarray, b: np.ndarray, numbers: dict[str, float]
) -> Finding | None:
    low, high = float(a.mean()), float(b.mean())
    doubt = (standard_error(a) ** 2 + standard_error(b) ** 2) ** 0.5
    ratio = high / low if low > 0 else float("inf")
    if ratio < limit("examine.gap_ratio") or high - low < limit("examine.sure") * doubt:
        return None
    copy = subject.learned.copy
    fitted = subject.errors(copy, subject.x, subject.y)
    held = subject.errors(copy, subject.vx, subject.vy)
    evidence = [Evidence("validation loss over training loss", ratio, limit("examine.gap_ratio"))]
    if fitted is not None and held is not None:
        gap = float(held.mean() - fitted.mean())
        doubt = (standard_error(held) ** 2 + standard_error(fitted) ** 2) ** 0.5
        numbers |= {"training error": float(fitted.mean()), "validation error": float(held.mean())}
        if gap < max(limit("examine.gap"), limit("examine.sure") * doubt):
            return None
        evidence.append(Evidence("validation error less training error", gap, limit("examine.gap")))
        if not subject.learned.own and not _hurts(subject, held):
            return None
    elif not subject.learned.own:
        return None
    return finding(
        "CST401",
        "warning",
        0.85 if subject.learned.own else 0.65,
        f"The loss is {number(low, 2)} on training rows and {number(high, 2)} on validation rows.",
        "Stop at the lowest validation loss, add dropout, weight decay or augmentation, or gather "
        f"more than {subject.rows.total or len(subject.x):,} rows.",
        *evidence,
    )


def _hurts(subject: Subject, held: np.ndarray) -> bool:
    """Whether a baseline is better, so that the gap is not the price of a hard problem."""
    known = subject.once(baselines)
    if known is None:
        return False
    gap = held - known.errors[known.best]
    return float(gap.mean()) > limit("examine.sure") * standard_error(gap)


def _calibration(subject: Subject, numbers: dict[str, float]) -> Finding | None:
    outputs = forward(subject.learned.copy.net, subject.vx)  # type: ignore[arg-type]
    table, truth = probabilities(subject.task, subject.kind, outputs), subject.held_labels
    if table is None or truth is None or len(truth) < LEAST_ROWS:
        return None
    confidence, hit = table.max(1), table.argmax(1) == truth
    error = calibration_error(confidence, hit)
    chance = _by_chance(confidence, subject.seed)
    numbers |= {"calibration error": error, "calibration error by chance": chance}
    if error < max(limit("examine.calibration"), chance):
        return None
    over = float(confidence.mean() - hit.mean()) > 0
    return finding(
        "CST405",
        "warning" if over else "info",
        0.85 if error > limit("examine.calibration_far") * limit("examine.calibration") else 0.7,
        f"The network is {number(100 * float(confidence.mean()), 3)} % confident on average and "
        f"right in {number(100 * float(hit.mean()), 3)} % of the validation rows.",
        f"Divide the logits by the temperature {number(_temperature(table, truth), 2)}, fitted on "
        "validation rows.",
        Evidence("calibration error", error, max(limit("examine.calibration"), chance)),
    )


def calibration_error(confidence: np.ndarray, hit: np.ndarray) -> float:
    """Return the mean distance between confidence and accuracy over bins of equal size.

    >>> calibration_error(np.full(100, 0.75), np.arange(100) % 2 == 0)
    0.25
    """
    order = np.argsort(confidence, kind="stable")
    parts = np.array_split(order, min(BINS, max(1, len(order) // 10)))
    gaps = [abs(float(confidence[p].mean() - hit[p].mean())) * len(p) for p in parts]
    return float(np.sum(gaps) / len(order))


def _by_chance(confidence: np.ndarray, seed: int) -> float:
    """Return the error that a perfectly calibrated network of this confidence rarely exceeds."""
    source = np.random.default_rng(seed)
    draws = source.random((DRAWS, len(confidence))) < confidence
    return float(np.quantile([calibration_error(confidence, hit) for hit in draws], 0.995))


def _temperature(table: np.ndarray, truth: np.ndarray) -> float:
    """Return the temperature of the lowest log loss, of a grid."""
    logits = np.log(np.maximum(table, 1e-12))
    grid = np.geomspace(0.2, 10, 60)

    def loss(t: float) -> float:
        z = logits / t
        z = z - z.max(1, keepdims=True)
        log_p = z - np.log(np.exp(z).sum(1, keepdims=True))
        return -float(log_p[np.arange(len(truth)), truth].mean())

    return float(grid[int(np.argmin([loss(t) for t in grid]))])
