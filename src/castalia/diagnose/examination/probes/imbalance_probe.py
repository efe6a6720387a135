"""Rare classes, and whether the network passes them over."""

from __future__ import annotations

import numpy as np

from castalia.diagnose.examination.examination_subject import Subject
from castalia.diagnose.examination.measures import labels, predictions
from castalia.diagnose.examination.outcomes import Outcome, saw, skipped
from castalia.diagnose.examination.trials import forward
from castalia.diagnose.finding_record import Evidence, Finding, finding
from castalia.diagnose.thresholds import limit
from castalia.utils.text import number

__all__ = ["imbalance"]

NAME = "imbalance"
LEAST = 5  # rows of a rare class from which its recall says anything


def imbalance(subject: Subject) -> Outcome:
    """Count classes and see whether the rare ones are ever predicted."""
    if subject.task not in ("binary", "multiclass"):
        return saw(NAME, {})
    known = labels(subject.task, subject.rows.all_y)
    if known is None or len(known) < 2:
        return skipped(NAME, "there are too few labels.")
    classes, counts = np.unique(known[known >= 0], return_counts=True)
    shares = counts / counts.sum()
    numbers = {"classes": len(classes), "rarest share": float(shares.min())}
    if len(classes) == 1:
        return saw(NAME, numbers, [_one_class(int(classes[0]))])
    # With many classes each is rare; rare is what is far below an even share.
    rare = classes[
        (shares < limit("examine.rare")) & (shares < limit("examine.rare_even") / len(classes))
    ]
    if len(rare) == 0:
        return saw(NAME, numbers)
    return saw(NAME, numbers, [_rare(subject, classes, shares, rare)])


def _one_class(label: int) -> Finding:
    return finding(
        "CST204",
        "error",
        0.95,
        f"All training rows have the label {label}: there is nothing to tell apart.",
        "Check how the rows were chosen.",
        Evidence("classes among the training rows", 1, 2, above=False),
    )


def _rare(subject: Subject, classes: np.ndarray, shares: np.ndarray, rare: np.ndarray) -> Finding:
    share = float(shares.min())
    recall = _recall(subject, rare)
    weight = ", ".join(number(1 / (len(classes) * s), 2) for s in shares[:10])
    names = ", ".join(str(int(label)) for label in rare[:8])
    ignored = recall is not None and recall < limit("examine.ignored")
    warned = ignored and (subject.learned.own or share < limit("examine.rare_short"))
    evidence = [Evidence("share of the rarest class", share, limit("examine.rare"), above=False)]
    if recall is not None:
        bar = limit("examine.ignored") if ignored else None
        evidence.append(Evidence("recall of the rare classes", recall, bar, above=False))
    which = f"Class {names} is" if len(rare) == 1 else f"Classes {names} are"
    whose = "its" if len(rare) == 1 else "their"
    action = f", and the network finds {'hardly any' if ignored else 'some'} of {whose} rows"
    return finding(
        "CST204",
        "warning" if warned else "info",
        0.85 if warned else 0.6,
        f"{which} rare (down to {number(100 * share, 2)} % of the rows)"
        f"{action if recall is not None else ''}.",
        f"Weight the classes, weight=[{weight}{', …' if len(classes) > 10 else ''}], and judge by "
        "balanced accuracy or precision and recall.",
        *evidence,
    )


def _recall(subject: Subject, rare: np.ndarray) -> float | None:
    """Return the share of rows of rare classes that are recognised."""
    if not subject.trainable or subject.labels is None:
        return None
    chosen = np.isin(subject.labels, rare)
    if chosen.sum() < LEAST:
        return None
    outputs = forward(subject.learned.copy.net, subject.x)
    predicted = predictions(subject.task, subject.kind, outputs, subject.y)
    return None if predicted is None else float((predicted == subject.labels)[chosen].mean())
