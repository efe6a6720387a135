"""The rules on the record of an estimator's training, and what its settings add to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from castalia.base import Estimator
from castalia.data.table_adapter import TableAdapter
from castalia.diagnose.diagnosis import Diagnosis
from castalia.diagnose.finding_record import Evidence, Finding, finding
from castalia.diagnose.record import Record
from castalia.diagnose.rules import judge
from castalia.diagnose.thresholds import limit
from castalia.utils.text import number

__all__ = ["judge_estimator"]

# The adapter drops constant columns, flags missing values and encodes words.
HANDLED = ("CST203",)
# That of tables standardises numbers, and what is sampled of its rows are not all of them.
OF_TABLES = ("CST201", "CST207")
# A linear model may begin at zero: its loss is convex.
CONVEX = ("CST108", "CST109")
FEW_EPOCHS, FEW_STEPS = 5, 300
NO_STEPS = 10  # in fewer no network learns anything, whatever its rate
BLAMED_ON_RATE = ("CST402", "CST403", "CST406", "CST111")


def judge_estimator(record: Record, estimator: Any, mute: Sequence[str] = ()) -> Diagnosis:
    """Return what the rules find, less what the estimator takes care of itself."""
    moot: tuple[str, ...] = HANDLED if isinstance(estimator, Estimator) else CONVEX
    if getattr(estimator, "adapter", None) is TableAdapter:
        moot += OF_TABLES
    found = judge(record, mute=(*mute, *moot))
    if not isinstance(estimator, Estimator) and set(found.codes) <= set(BLAMED_ON_RATE):
        found = replace(found, findings=_crawls(record, found.findings))
    if not found:
        found = replace(found, findings=(*found.findings, *_too_few(record, estimator)))
    found = replace(found, findings=_penalised(estimator, found.findings))
    found = found.mute(*mute)
    return replace(found, subject=type(estimator).__name__)


def _penalised(estimator: Any, others: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """CST404 of a penalty that is a setting: whatever else is wrong may come of it.

    The steeper the penalty, the shorter the steps must be: a rate that was right is too high then.
    """
    weight, bar = getattr(estimator, "C", None), limit("estimator.penalty")
    known = any(one.code == "CST404" for one in others)
    alarmed = any(one.severity != "info" for one in others)
    if not isinstance(weight, float) or not weight < bar or known or not alarmed:
        return others
    cause = finding(
        "CST404",
        "warning",
        0.85,
        f"C={number(weight)} makes the penalty outweigh the errors.",
        "Raise C.",
        Evidence("weight of the errors against the penalty", weight, bar, above=False),
    )
    return (replace(cause, symptoms=others),)


def _crawls(record: Record, others: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """CST102 of a linear model: begun at zero, it has no update-to-weight ratio to tell it by.

    Its loss is convex: where it hardly fell and is as steep as it was, the steps are too small.
    """
    losses = np.asarray(record.losses)
    slopes = [_norm(look.gradients) for look in record.looks]
    if len(losses) < 20 or len(slopes) < 4 or not losses[0] > 0:
        return others
    tenth = max(len(losses) // 10, 1)
    fall = float(1 - losses[-tenth:].mean() / losses[:tenth].mean())
    slope = float(np.mean(slopes[-2:])) / max(float(np.mean(slopes[:2])), 1e-300)
    crawls, steep = limit("estimator.crawls"), limit("estimator.as_steep")
    if not (abs(fall) < crawls and slope > steep):
        return others
    cause = finding(
        "CST102",
        "error",
        0.85,
        "The learning rate is too low: the loss hardly fell, and is as steep as at the start.",
        "Raise the learning rate.",
        Evidence("share of the loss taken away", fall, crawls, above=False),
        Evidence("norm of the last gradients over the first", slope, steep),
    )
    return (replace(cause, symptoms=others),)


def _norm(gradients: Mapping[str, float | None]) -> float:
    return float(np.sqrt(sum(norm**2 for norm in gradients.values() if norm is not None)))


def _too_few(record: Record, estimator: Any) -> list[Finding]:
    """CST111 where a few passes over few rows were all there was: too short for the rules."""
    losses = np.asarray(record.losses)
    third = len(losses) // 3
    if estimator.epochs > FEW_EPOCHS or not 3 <= len(losses) < FEW_STEPS or not third:
        return []
    before, after = losses[:third].mean(), losses[-third:].mean()
    fall = float((before - after) / before) if before > 0 else 0.0
    falls = limit("estimator.falls")
    evidence = [Evidence("steps in all", len(losses), FEW_STEPS, above=False)]
    words = "with the loss still falling"
    if fall > falls:
        evidence.append(Evidence("fall of the loss from the first to the last third", fall, falls))
    elif len(losses) < NO_STEPS:
        words = "too few to learn anything"
    else:
        return []
    words = f"Training stopped after {len(losses)} steps, {words}."
    return [finding("CST111", "warning", 0.7, words, "Train for more epochs.", *evidence)]
