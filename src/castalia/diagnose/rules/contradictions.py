"""Explanations that a case contradicts, though its findings would allow them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from castalia.diagnose.finding_record import Finding
from castalia.diagnose.rules.case import SAME_GAP, Case
from castalia.diagnose.rules.initialisation_rules import drowned
from castalia.diagnose.rules.learning_rate_rules import below_custom
from castalia.diagnose.rules.unit_rules import dead_shares
from castalia.diagnose.thresholds import limit

__all__ = ["holds", "softened"]

# What may be odd and do no harm: a remark where the loss falls all the time.
WHATEVER_ELSE = ("CST108", "CST110", "CST112", "CST301", "CST302", "CST304", "CST305")
OF_STEPS = ("CST101", "CST103", "CST104", "CST107", "CST113", "CST114", "CST503")
# What a network shows whose rows say nothing about their targets.
BY_NOTHING = {f"CST{n}" for n in (101, 102, 103, 104, 106, 107, 111, 113, 114, 401, 402, 404)}
# Faults of the loss and of the batches, which no simple model meets.
BEYOND_ROWS = ("CST209", "CST301", "CST302", "CST305")
BY_HARM = ("CST101", "CST103", "CST104", "CST107", "CST306", "CST406")


def softened(case: Case, found: Finding) -> Finding:
    """Return a finding, as a remark where it does no harm."""
    going = case.thrives or (case.descends and found.code == "CST103")  # jumps are no vanishing
    harmless = going and found.code in BY_HARM and case.record.failed is None
    return replace(found, severity="info") if harmless else found


def holds(case: Case, cause: str, symptom: str) -> bool:
    """Whether a cause may explain a symptom in this case, by their codes."""
    if "CST403" in (cause, symptom) and {cause, symptom} & BY_NOTHING:
        return case.barren == (cause == "CST403")
    if symptom == "CST403" and cause in BEYOND_ROWS:
        return not case.barren
    if symptom == "CST109" and drowned(case):
        return False  # so it began, whatever came later
    if cause == "CST109" and symptom in ("CST105", "CST501", "CST502"):
        return drowned(case)
    if cause == "CST108" and symptom == "CST110":
        return not _not_handed_over(case)
    if symptom == "CST102" and (cause == "CST201" or below_custom(case)):
        return False
    if cause == "CST202" and symptom in ("CST101", "CST102"):
        return not _follows_slopes(case) or (symptom == "CST101" and len(case.depth) > 1)
    if cause == "CST201" and symptom == "CST301":
        return case.copies  # outputs are out of reach of what was not scaled
    if cause == "CST116" and symptom in ("CST101", "CST104"):
        return _left_unnormalised(case)
    if "CST404" in (cause, symptom) and case.smothered:
        return cause == "CST404" or cause in WHATEVER_ELSE
    if cause == "CST404" and symptom in OF_STEPS:
        return False
    if cause == "CST306" and case.record.failed is None:
        return not _has_outputs_to_spare(case)
    if "CST110" in (cause, symptom) and {cause, symptom} & {"CST106", "CST107", "CST109"}:
        return _silent_from_the_start(case) == (symptom == "CST110")
    if cause == "CST114" and symptom in ("CST102", "CST404"):
        return symptom == "CST102" and not case.promise < limit("rate.conditioned")
    if {cause, symptom} == {"CST111", "CST402"}:
        return case.narrow == (cause == "CST402")  # more steps give a network no more room
    if {cause, symptom} == {"CST401", "CST405"}:
        # As accurate as in training but too sure: a matter of temperature, not of fit.
        return (case.score_gap < SAME_GAP) == (cause == "CST405")
    if cause == "CST406" and symptom in ("CST103", "CST106"):
        return case.unchanging > limit("inputs.same")
    if symptom == "CST406" and case.unchanging > limit("inputs.same"):
        return False
    if cause == "CST106" and symptom == "CST103":
        # As long as some units of each layer live, gradients find their way through them.
        return max(dead_shares(case).values(), default=0.0) > limit("units.many")
    if cause == "CST103" and symptom == "CST102":
        return not _first_layers_keep_pace(case)
    if cause == "CST109" and symptom in ("CST104", "CST101"):
        return case.weights_radius <= limit("recurrence.amplifies")
    if cause == "CST104" and symptom in ("CST101", "CST107", "CST109"):
        return _explodes_by_itself(case)
    if cause == "CST101" and symptom == "CST104":
        return not _explodes_by_itself(case)
    return True


def _not_handed_over(case: Case) -> bool:
    """Whether some never change for want of an optimizer: equal or not, they would not."""
    still = [w for w in case.record.weights if w.moved is False and w.trainable]
    return any(not w.optimized for w in still)


def _first_layers_keep_pace(case: Case) -> bool:
    """Whether steps of the first layers are as long as those of the last: Adam scales them so.

    Then gradients that vanish do not slow them down.
    """
    ends = [case.depth[0], case.depth[-1]] if len(case.depth) > 1 else []
    early = [[look.updates.get(name, 0.0) for name in ends] for look in case.looks[:6]]
    paces = [first / last for first, last in filter(None, early) if last > 0]
    return bool(paces) and float(np.median(paces)) > limit("gradient.pace")


def _follows_slopes(case: Case) -> bool:
    """Whether steps are as long as gradients are: those of large targets are long by themselves.

    The curvature of a squared error does not depend on targets, nor does the rate that suits a
    linear model.
    """
    plain = case.optimizer is not None and case.optimizer.kind == "SGD"
    return plain and case.head.loss == "mse"


def _left_unnormalised(case: Case) -> bool:
    """Whether steps were taken without the batch statistics that they were meant for."""
    normed = any("BatchNorm" in layer.kind for layer in case.record.layers)
    return normed and bool(case.record.trained_in_evaluation_mode)


def _has_outputs_to_spare(case: Case) -> bool:
    """Whether there are more outputs than classes: they fall silent, and hinder nothing."""
    met = len(case.shares)
    return bool(met) and len(case.head.outputs) > 1 and case.head.outputs[1] > met


def _silent_from_the_start(case: Case) -> bool:
    """Whether a whole layer of rectified units answers nothing at the first look, or all is flat.

    Where the loss depends on weights and yet has no slope, nothing is cut off: it saturates.
    """
    slopes = [g for look in case.looks[:1] for g in look.gradients.values() if g is not None]
    if slopes and not any(slopes):
        return True
    units = [u for look in case.looks[:1] for u in look.units if u.kind == "relu" and not u.gate]
    return any(u.active.size and not (u.active > 0).any() for u in units)


def _explodes_by_itself(case: Case) -> bool:
    """Whether the weights amplify, or steps are small: then the rate is not to blame."""
    amplifies = case.weights_radius > limit("recurrence.amplifies")
    small = case.early_ratio < limit("rate.small_steps") and not case.overshoots
    return amplifies or small
