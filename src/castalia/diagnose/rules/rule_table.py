"""The table of all rules, and the diagnosis that they give of a record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from castalia.diagnose.causes import arrange
from castalia.diagnose.diagnosis import Diagnosis
from castalia.diagnose.finding_record import Finding
from castalia.diagnose.record import Record, curves_of
from castalia.diagnose.rules.calibration_rules import miscalibrated
from castalia.diagnose.rules.case import Case
from castalia.diagnose.rules.contradictions import holds, softened
from castalia.diagnose.rules.curvature_rules import zigzag
from castalia.diagnose.rules.duration_rules import noisy, too_short
from castalia.diagnose.rules.fit_rules import no_better, over_regularised, overfits, underfits
from castalia.diagnose.rules.generative_rules import collapsed_modes, silenced_generator
from castalia.diagnose.rules.gradient_rules import explodes, never_reset, vanishes
from castalia.diagnose.rules.ignored_input_rules import ignores_input
from castalia.diagnose.rules.initialisation_rules import poor_start
from castalia.diagnose.rules.input_rules import degenerate, inputs_unscaled, targets_unscaled
from castalia.diagnose.rules.label_rules import imbalanced, mislabelled, ordered
from castalia.diagnose.rules.layer_rules import linear_in_a_row
from castalia.diagnose.rules.learning_rate_rules import too_high, too_low
from castalia.diagnose.rules.loss_rules import broadcasts, wrong_loss
from castalia.diagnose.rules.mode_rules import batch_statistics, wrong_mode
from castalia.diagnose.rules.non_finite_rules import not_a_number
from castalia.diagnose.rules.not_training_rules import frozen
from castalia.diagnose.rules.output_rules import wrong_activation, wrong_axis, wrong_size
from castalia.diagnose.rules.sequence_rules import (
    collapsed_code,
    learns_empty_steps,
    learns_padding,
    sees_the_future,
)
from castalia.diagnose.rules.split_rules import leaks, shifted, too_few
from castalia.diagnose.rules.unit_rules import alike, dead, saturated

__all__ = ["LASTING", "RULES", "Rule", "judge"]

Rule = Callable[[Case], Iterator[Finding]]

RULES: tuple[Rule, ...] = (
    too_high,
    too_low,
    vanishes,
    explodes,
    never_reset,
    not_a_number,
    dead,
    saturated,
    alike,
    poor_start,
    frozen,
    too_short,
    noisy,
    zigzag,
    batch_statistics,
    wrong_mode,
    inputs_unscaled,
    targets_unscaled,
    degenerate,
    imbalanced,
    mislabelled,
    ordered,
    leaks,
    shifted,
    too_few,
    wrong_activation,
    wrong_axis,
    wrong_size,
    wrong_loss,
    broadcasts,
    linear_in_a_row,
    overfits,
    over_regularised,
    underfits,
    no_better,
    miscalibrated,
    ignores_input,
    collapsed_modes,
    silenced_generator,
    collapsed_code,
    learns_padding,
    learns_empty_steps,
    sees_the_future,
)

# Rules of one code that go through all rows: not asked where nobody wants to hear of it.
OF_ONE_CODE: dict[Rule, str] = {
    inputs_unscaled: "CST201",
    degenerate: "CST203",
    too_few: "CST207",
    shifted: "CST208",
}

# Faults that more steps cannot cure, so that they may be said while a training runs. These rules
# fit no model of their own and are quick.
LASTING: tuple[Rule, ...] = (
    too_high,
    never_reset,
    not_a_number,
    alike,
    frozen,
    wrong_activation,
    wrong_axis,
    wrong_size,
    wrong_loss,
    broadcasts,
    learns_padding,
)


def judge(record: Record, mute: Sequence[str] = (), rules: Sequence[Rule] = RULES) -> Diagnosis:
    """Return what the rules find in a record, causes first, symptoms under them."""
    case, notes = Case(record), list(record.notes)
    found: list[Finding] = []
    for rule in rules:
        if OF_ONE_CODE.get(rule) in mute:
            continue
        try:
            with np.errstate(all="ignore"):
                found.extend(rule(case))
        except Exception as error:  # a rule's mistake must not cost the user the diagnosis
            notes.append(f"Rule {rule.__name__} failed: {type(error).__name__}: {error}")
    with np.errstate(all="ignore"):
        found = [softened(case, f) for f in found if f.code not in mute]
    if record.given_up:  # half a training may look like a bad one
        found = [replace(f, severity="info") for f in found]
    causes = arrange(found, partial(holds, case))
    return Diagnosis(causes, (*notes, *_unseen(case)), curves=curves_of(record))


def _unseen(case: Case) -> list[str]:
    """Say what could not be judged, and why."""
    record, notes = case.record, []
    if not record.losses:
        return ["No step was seen: backward() or optimizer.step() was never called."]
    if not record.evaluations:
        notes.append(
            "No validation was seen: overfitting, calibration, leakage and shift cannot be judged."
        )
    if case.head.loss == "unknown" and record.looks and case.scored(record.train, since=0) is None:
        notes.append(
            "The loss was not recognised: outputs and targets are judged only if given to log()."
        )
    return notes
