"""A run on shuffled labels: a network that still beats chance on held rows sees the answer.

Equal rows keep equal labels, so rows that stand on both sides give themselves away, and so does
any other way by which targets reach the network.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from castalia.diagnose.examination.coincidence import by_chance, row_keys
from castalia.diagnose.examination.examination_subject import Subject
from castalia.diagnose.examination.measures import labels
from castalia.diagnose.examination.outcomes import Outcome, saw, skipped
from castalia.diagnose.finding_record import Evidence, Finding, finding
from castalia.diagnose.thresholds import limit

__all__ = ["shuffled_labels"]

NAME = "shuffle-test"
STEPS = 250


def shuffled_labels(subject: Subject) -> Outcome:
    """Train on shuffled labels, and compare with guessing on held rows, shuffled too."""
    if subject.vx is None or subject.vy is None:
        return skipped(NAME, "without validation data, a run on shuffled labels has no held rows.")
    if not subject.trainable or subject.labels is None or len(subject.vx) < 20:
        return skipped(NAME, f"needs labels or values for every row (task {subject.task}).")
    y, held = _shuffled(subject, subject.vx, subject.vy)
    copy = subject.start()
    subject.train(copy, STEPS, y=y)
    errors = subject.errors(copy, subject.vx, held)
    if errors is None or not np.isfinite(errors).all():
        return skipped(NAME, "the outputs cannot be read as predictions.")
    chance = _chance(subject, labels(subject.task, held))
    gap = chance - errors
    sure = float(gap.mean()) / max(float(gap.std()) / len(gap) ** 0.5, 1.0 / len(gap))
    numbers = {"error": float(errors.mean()), "chance": float(chance.mean())}
    if sure < limit("examine.leak_sure") or errors.mean() > limit("examine.chance") * chance.mean():
        return saw(NAME, numbers)
    return saw(NAME, numbers, [_leak(float(errors.mean()), float(chance.mean()))])


def _shuffled(subject: Subject, vx: Tensor, vy: Tensor) -> tuple[Tensor, Tensor]:
    """Return shuffled targets of both sides; a held row that is a training row gets its target."""
    source = np.random.default_rng(subject.seed)
    y = subject.y[torch.from_numpy(source.permutation(len(subject.y))).to(subject.device)]
    held = vy[torch.from_numpy(source.permutation(len(vy))).to(subject.device)]
    if not by_chance(subject.x):
        place = {key: i for i, key in enumerate(row_keys(subject.x))}
        for i, key in enumerate(row_keys(vx)):
            if key in place:
                held[i] = y[place[key]]
    return y, held


def _chance(subject: Subject, held: np.ndarray | None) -> np.ndarray:
    """Return the errors of the best constant."""
    known = np.asarray(held)
    if subject.task == "regression":
        error = np.square(known - known.mean(axis=0)) / subject.unit
        return error.reshape(len(known), -1).mean(axis=1)
    flat = known.reshape(len(known), -1)
    common = np.array(
        [np.bincount(column - column.min()).argmax() + column.min() for column in flat.T]
    )
    return (flat != common).mean(axis=1)


def _leak(error: float, chance: float) -> Finding:
    return finding(
        "CST206",
        "error",
        0.85,
        "Trained on shuffled labels, the network still beats chance on rows it has not seen: the "
        "answer reaches it by another way than the input.",
        "Look for targets inside the inputs, in the module or in state shared between batches.",
        Evidence("error on held rows", error, limit("examine.chance") * chance, above=False),
        Evidence("error of the best constant", chance),
    )
