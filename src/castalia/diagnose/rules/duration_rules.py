"""CST111 and CST113: too few steps, or steps too noisy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from castalia.diagnose.finding_record import Evidence, Finding, Remedy, finding
from castalia.diagnose.rules.case import Case
from castalia.diagnose.thresholds import limit
from castalia.utils.text import number

__all__ = ["noisy", "too_short"]

MANY_ROWS = 8


def _validation_fall(case: Case) -> float | None:
    """Relative fall of the validation loss over the last fifth; None where unknown."""
    values = [e.loss for e in case.record.evaluations if e.loss is not None]
    if len(values) < 2:
        return None
    count = max(1, len(values) // 5)
    before, after = np.median(values[-2 * count : -count]), np.median(values[-count:])
    return float((before - after) / before) if before > 0 else 0.0


def too_short(case: Case) -> Iterator[Finding]:
    """Training and validation loss still falling at the end."""
    if case.broken or case.adversarial or case.acts or case.steps < 5 or not len(case.finite):
        return
    fall, held = case.fall, _validation_fall(case)
    bar = limit("end.falling")
    size = int(np.median([look.size for look in case.looks])) if case.looks else 0
    descends = fall > limit("end.descends") or case.turning > limit("end.same_slope")
    few = case.steps < limit("steps.few") and size >= 128 and not case.in_one_piece
    if few and descends and _much_left(case):
        smaller = max(16, 2 ** int(np.log2(size / 16)))
        yield finding(
            "CST113",
            "warning",
            0.75,
            f"Batches of {size} leave only {case.steps} steps, and the loss is still falling.",
            Remedy(f"batch_size={size} → {smaller}", {"batch_size": smaller}),
            Evidence("steps in all", case.steps, limit("steps.few"), above=False),
            Evidence("fall of the loss over the last fifth", fall),
        )
        return
    first, last = case.level(0, 0.2), case.level(0.8, 1.0)
    share = fall * case.level(0.6, 0.8) / max(first - last, 1e-12) if first > last else 0.0
    part, half = limit("end.part") * bar, limit("end.learnt")
    begun = share > limit("end.begun") and case.learnt < half
    few = len(case.record.evaluations) <= 3  # the last fifth is less than an epoch
    plain = few and held is not None and held > bar and fall > part and not case.learnt > half
    gains = _gains(case)
    falling = fall > bar or begun or plain or gains > limit("end.gain")
    least = bar if case.learnt > half else part
    if begun or not fall > bar:
        least = limit("end.held_least")
    alone = fall > max(case.by_chance, 0.0 if case.learnt < half else bar)
    confirmed = alone if held is None else held > least
    both = fall > 3 * bar and (held or 0.0) > 3 * bar
    left = _much_left(case) or (both and case.learnt < limit("end.nearly_learnt"))
    if not falling or not confirmed or not left or case.nearly_right:
        return
    evidence = [Evidence("fall of the training loss over the last fifth", fall, bar)]
    if not fall > bar:
        signs = (
            (
                begun,
                Evidence(
                    "share of the whole fall that came in the last fifth", share, limit("end.begun")
                ),
            ),
            (plain, Evidence("the same, where there are few validations", fall, part)),
            (
                True,
                Evidence(
                    "share of the guessing loss that as many steps again may gain",
                    gains,
                    limit("end.gain"),
                ),
            ),
        )
        evidence = [Evidence(evidence[0].what, fall), next(e for holds, e in signs if holds)]
    if held is not None:
        what = "fall of the validation loss over the last fifth"
        evidence.append(Evidence(what, held, least))
    unseen = held is None and case.learnt > half  # validation may have levelled off long ago
    yield finding(
        "CST111",
        "info" if unseen or _levelled(case) or case.annealed or case.computed else "warning",
        0.7 + 0.15 * (held is not None),
        f"The loss was still falling when training stopped, by {number(100 * fall, 2)} % over the "
        "last fifth of the steps.",
        "Train for three times as many epochs.",
        *evidence,
    )


def _levelled(case: Case) -> bool:
    """Whether the validation score has stopped rising, most being right: it only grows surer."""
    scores = np.asarray([e.score for e in case.record.evaluations if e.score is not None])
    if len(scores) < 5:
        return False
    count = max(2, len(scores) // 5)
    before, after = float(scores[-2 * count : -count].mean()), float(scores[-count:].mean())
    by_chance = float(np.diff(scores[len(scores) // 2 :]).std())
    bar = max(limit("end.falling") * (1 - before), by_chance)
    return limit("end.mostly_right") <= before <= 1 and after - before < bar


def _gains(case: Case) -> float:
    """Return what as many steps again may gain, over the loss of guessing; 0 where it is noise."""
    before, after = case.level(0.5, 0.75), case.level(0.75, 1.0)
    error = case.noise * after / np.sqrt(len(case.finite) / 4)
    outputs, rows = case.head.outputs[:2], [look.size for look in case.looks]
    # One class a row: neither the words of a text nor the pairs of a batch.
    classes = len(set(outputs)) == 2 and outputs[0] in rows
    known = case.labels is not None and classes and case.comparable
    if not known or not case.learnt < limit("end.learnt"):
        return 0.0  # of other losses it is not known how low they can go
    if not before - after > 3 * error:
        return 0.0
    return 2 * (before - after) / max(case.guess, 1e-12)  # half as fast as in the last half


def _much_left(case: Case) -> bool:
    """Whether there is still much to gain."""
    if np.isfinite(case.learnt):
        return case.learnt < limit("end.left")
    return case.final > limit("end.loss_left") * case.initial


def noisy(case: Case) -> Iterator[Finding]:
    """A loss that jumps from step to step at tiny batches, and gets nowhere."""
    if case.broken or case.adversarial or case.acts or not case.looks or case.steps < 20:
        return
    if (case.finite < 0).any():
        return  # of a loss that changes its sign no ratio says anything
    size = int(np.median([look.size for look in case.looks]))
    if not 0 < size <= 4 or not np.isfinite(case.noise):
        return
    nowhere = not np.isfinite(case.learnt) or case.learnt < limit("noise.learnt")
    nowhere = nowhere and not case.descends
    loud = case.noise > limit("noise.loss")
    one_of_many = size == 1 and _many_rows(case)
    alone = one_of_many and case.noise > limit("noise.remark")
    stuck = alone and case.stuck
    single = size == 1 and case.poor and case.noise > limit("noise.single")
    if nowhere and (loud or single or stuck):
        yield finding(
            "CST113",
            "warning" if loud or stuck else "info",
            0.75 if loud else 0.6,
            f"Batches of {size} give gradients that are mostly noise: the loss changes by "
            f"{number(100 * case.noise, 2)} % from step to step.",
            Remedy(f"batch_size={size} → 32", {"batch_size": 32}),
            Evidence(
                "spread of the loss over its mean",
                case.noise,
                limit("noise.loss" if loud else "noise.remark" if stuck else "noise.single"),
            ),
        )
    elif alone:
        yield finding(
            "CST113",
            "info",
            0.5,
            f"Every step follows a single row: the loss changes by {number(100 * case.noise, 2)} % "
            "from step to step.",
            Remedy("batch_size=1 → 32", {"batch_size": 32}),
            Evidence("spread of the loss over its mean", case.noise, limit("noise.remark")),
        )
    elif nowhere and one_of_many and case.learnt < limit("case.stuck"):  # a penalty hides the noise
        yield finding(
            "CST113",
            "warning",
            0.6,
            "Every step follows a single row, and nothing is learnt.",
            Remedy("batch_size=1 → 32", {"batch_size": 32}),
            Evidence("share of the loss taken away", case.learnt, limit("case.stuck"), above=False),
        )


def _many_rows(case: Case) -> bool:
    """Whether the rows that were kept are mostly different: they could be taken together."""
    return len(case.met) >= max(MANY_ROWS, limit("noise.different") * case.rows_kept)
