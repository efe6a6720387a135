"""CST114: a loss so curved in some directions that plain descent zigzags."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from castalia.diagnose.finding_record import Evidence, Finding, Remedy, finding
from castalia.diagnose.rules.case import Case
from castalia.diagnose.thresholds import limit

__all__ = ["zigzag"]


def zigzag(case: Case) -> Iterator[Finding]:
    """Inputs, or successive gradients, that show one direction far steeper than the others."""
    optimizer = case.optimizer
    if optimizer is None or optimizer.kind != "SGD" or case.broken or case.adversarial:
        return
    if not len(case.finite) or case.final > np.fmax(case.initial, case.guess) or not _creeps(case):
        return
    evidence = []
    if case.turning < limit("turning.zigzag") and optimizer.momentum == 0:
        what = "mean cosine of successive gradients"
        evidence.append(Evidence(what, case.turning, limit("turning.zigzag"), above=False))
    ratio = _curvature(case)
    # No steep direction holds back steps that are short.
    held = not np.fmax(case.ratio, case.early_ratio) < limit("curvature.steps")
    if held and ratio > limit("curvature.ratio"):
        what = "largest variance of the inputs' axes over the median one"
        evidence.append(Evidence(what, ratio, limit("curvature.ratio")))
    evidence += _short_of_the_best(case)
    if not evidence:
        return
    yield finding(
        "CST114",
        "warning",
        min(0.94, 0.7 + 0.12 * len(evidence)),
        "The loss is far steeper in some directions than in others, and plain descent creeps along "
        f"the flat ones: {evidence[-1].sentence}.",
        Remedy(
            "Use momentum or Adam; decorrelate or normalise the inputs.",
            {"training__optimizer": "adam"},
        ),
        *evidence,
    )


def _short_of_the_best(case: Case) -> list[Evidence]:
    """Return how far descent is from the least squares that a linear network could reach.

    Room to fit them it has, and inputs with flat directions are what descent is slow on.
    """
    matrices = [w.shape for w in case.record.weights if len(w.shape) >= 2]
    if case.pairs is None or case.head.loss != "mse" or case.head.chain:
        return []
    x, y = (part.astype(float) for part in case.pairs)
    if matrices != [(1, x.shape[1])] or len(x) < 4 * x.shape[1] or not np.isfinite(x).all():
        return []
    x = x - x.mean(axis=0)
    values, axes = np.linalg.eigh(x.T @ x / len(x))
    ratio = float(values[-1] / max(values[0], 1e-12 * values[-1], 1e-300))
    along = (x @ axes).T @ (y - y.mean()) / len(y)  # what each direction has to do with the answer
    keep = values > limit("rounding.eigenvalue") * values[-1]
    best = float((along[keep] ** 2 / values[keep]).sum() / max(y.var(), 1e-12))
    if ratio < limit("curvature.ratio") or not best > case.learnt + limit("fit.simple"):
        return []
    return [
        Evidence(
            "R² of least squares minus the network's", best - case.learnt, limit("fit.simple")
        ),
        Evidence(
            "largest variance of the inputs over the smallest", ratio, limit("curvature.ratio")
        ),
    ]


def _creeps(case: Case) -> bool:
    """Whether there is something left to learn and the loss moves on slowly."""
    trained, n = case.accuracy(case.record.train, 8, 0.75)
    if case.nearly_right or (n >= 40 and trained > limit("curvature.fitted")):
        return False
    before, after = case.level(0.6, 0.8), case.level(0.8, 1.0)
    if (
        case.learnt > limit("curvature.nearly_learnt")
        and not limit("curvature.creeps") * before > after
    ):
        return False
    learnt = -limit("curvature.worse") < case.learnt < limit("curvature.learnt")
    return not np.isfinite(case.learnt) or learnt


def _curvature(case: Case) -> float:
    """Largest over median eigenvalue of the second moments of the inputs, each on unit scale."""
    x = case.inputs
    if x is None or not case.tabular or not 3 <= x.shape[1] <= 256 or len(x) < 2 * x.shape[1]:
        return np.nan
    x = x.astype(float)
    x = x[:, x.std(axis=0) > limit("rounding.constant")]
    if x.shape[1] < 3 or not np.isfinite(x).all():
        return np.nan
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    values = np.linalg.eigvalsh(x.T @ x / len(x))
    return float(values[-1] / max(np.median(values), 1e-12))
