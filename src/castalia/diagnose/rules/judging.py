"""Asking every rule, and telling causes from symptoms."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from castalia.diagnose.causes import arrange
from castalia.diagnose.diagnosis import Diagnosis
from castalia.diagnose.findings import Finding
from castalia.diagnose.record import Record
from castalia.diagnose.rules import (
    blind,
    conditioning,
    confidence,
    duration,
    fit,
    gradients,
    initialisation,
    inputs,
    labels,
    layers,
    learning_rate,
    loss,
    modes,
    non_finite,
    not_training,
    outputs,
    sequences,
    splits,
    units,
)
from castalia.diagnose.rules.case import Case
from castalia.diagnose.rules.contradictions import holds

__all__ = ["RULES", "judge"]

Rule = Callable[[Case], Iterator[Finding]]

RULES: tuple[Rule, ...] = (
    learning_rate.too_high,
    learning_rate.too_low,
    gradients.vanishes,
    gradients.explodes,
    gradients.never_reset,
    non_finite.not_a_number,
    units.dead,
    units.saturated,
    units.alike,
    initialisation.poor_start,
    not_training.frozen,
    duration.too_short,
    duration.noisy,
    conditioning.zigzag,
    modes.batch_statistics,
    modes.wrong_mode,
    inputs.inputs_unscaled,
    inputs.targets_unscaled,
    inputs.degenerate,
    labels.imbalanced,
    labels.mislabelled,
    labels.ordered,
    splits.leaks,
    splits.shifted,
    splits.too_few,
    outputs.wrong_activation,
    outputs.wrong_axis,
    outputs.wrong_size,
    loss.wrong_loss,
    loss.broadcasts,
    layers.linear_in_a_row,
    fit.overfits,
    fit.over_regularised,
    fit.underfits,
    fit.no_better,
    confidence.miscalibrated,
    blind.ignores_input,
    sequences.collapsed_code,
    sequences.learns_padding,
    sequences.learns_empty_steps,
    sequences.sees_the_future,
)


def judge(record: Record, mute: Sequence[str] = ()) -> Diagnosis:
    """Return what the rules find in a record, causes first, symptoms under them.

    Parameters
    ----------
    record
        What was seen of a training.
    mute
        Codes not wanted.
    """
    case, notes = Case(record), list(record.notes)
    found: list[Finding] = []
    for rule in RULES:
        try:
            with np.errstate(all="ignore"):
                found.extend(rule(case))
        except Exception as error:  # a rule's mistake must not cost the user the diagnosis
            notes.append(f"Rule {rule.__name__} failed: {type(error).__name__}: {error}")
    found = [f for f in found if f.code not in mute]
    return Diagnosis(arrange(found, partial(holds, case)), (*notes, *_unseen(case)))


def _unseen(case: Case) -> list[str]:
    """Say what could not be judged, and why."""
    record, notes = case.record, []
    if not record.losses:
        return ["No step was seen: backward() or optimizer.step() was never called."]
    if not record.evaluations:
        notes.append(
            "No validation was seen: overfitting, calibration, leakage and shift cannot be judged."
        )
    if case.head.loss == "unknown" and record.looks:
        notes.append(
            "The loss was not recognised: outputs and targets are judged only if told to log()."
        )
    return notes
