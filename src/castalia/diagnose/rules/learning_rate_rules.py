"""CST101 and CST102: a learning rate too high or too low."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from castalia.diagnose.finding_record import Evidence, Finding, Remedy, finding
from castalia.diagnose.rules.case import Case
from castalia.diagnose.thresholds import limit
from castalia.utils.text import number

__all__ = ["too_high", "too_low"]

HEALTHY_RATIO = limit("rate.healthy")


def too_high(case: Case) -> Iterator[Finding]:
    """Loss that grows, bounces or leaps, with steps large against the weights."""
    if not len(case.finite) or case.adversarial or case.acts or not case.optimizer:
        return
    tries = case.optimizer.kind == "LBFGS"  # its losses are of trials, of which it keeps the best
    evidence = [*_diverged(case), *(() if tries else (*_leapt(case), *_bounces(case)))]
    ratio = case.early_ratio if np.isfinite(case.early_ratio) else case.ratio
    if ratio < limit("rate.small") and case.spike > limit("gradient.spike"):
        return  # steps were small until one gradient exploded
    # Weights of a linear model begin near zero, so their first steps are large against them.
    layered = sum(len(w.shape) >= 2 for w in case.record.weights) > 1
    large = layered and not tries and np.isfinite(ratio) and ratio > limit("rate.ratio")
    if large:
        evidence.append(Evidence("update-to-weight ratio (median)", ratio, limit("rate.ratio")))
    died = _died(case) if ratio > limit("rate.small") else []
    evidence += died
    had_learnt = case.final < limit("rate.had_learnt") * case.initial
    broken = case.broken and not had_learnt
    harmed = case.poor or broken or case.stuck
    weight = len(evidence)
    if weight == 0 or (weight == 1 and not (harmed and (large or died or broken))):
        return
    if not harmed and not (weight >= 2 and _unsettled(case)):
        return
    sure = min(0.97, 0.45 + 0.17 * weight + (0.1 if large and harmed else 0.0))
    severity = "error" if harmed else "warning"
    yield finding(
        "CST101",
        severity,
        sure,
        f"The learning rate {number(case.lr)} is too high: {_words(evidence[0])}.",
        _lower(case, ratio),
        *evidence,
    )


def _diverged(case: Case) -> list[Evidence]:
    """Return the growth of the loss from its start to its end or to where it broke."""
    late = case.final
    if case.broken and len(case.finite) > 1:
        late = float(case.finite[-3:].max())
    if case.start > 0 and late > limit("rate.grown") * case.start:
        grown = late / case.start
        return [Evidence("last loss over the first", grown, limit("rate.grown"))]
    leaps = case.early_ratio > limit("rate.small")  # else one bad batch explains the end as well
    at_once, bar = case.broken and 1 < len(case.finite) <= 3, limit("rate.grown_at_once")
    if at_once and leaps and case.finite[-1] > bar * case.initial:
        return [Evidence("last loss over the first", case.finite[-1] / case.initial, bar)]
    return []


def _leapt(case: Case) -> list[Evidence]:
    """Return the highest loss of the first tenth over the first loss: steps that jump too far."""
    early = case.finite[: max(20, len(case.finite) // 10)]
    if case.start > 0 and len(early) > max(2, case.pooled):
        together = np.convolve(early, np.full(case.pooled, 1 / case.pooled), "valid")
        leap = float(together.max()) / case.start
        if leap > limit("rate.spike"):
            return [Evidence("highest early loss over the first", leap, limit("rate.spike"))]
    return []


def _died(case: Case) -> list[Evidence]:
    """Return the share of rectified units that were alive at the start and are dead at the end."""
    looks = [look for look in case.looks if look.units]
    if len(looks) < 3:
        return []
    first, last = looks[0].units, looks[-1].units
    at_start = {(u.layer, u.kind): float((u.active == 0).mean()) for u in first}
    lost = [
        float((u.active == 0).mean()) - at_start.get((u.layer, u.kind), 1.0)
        for u in last
        if u.kind == "relu"
    ]
    if lost and max(lost) > limit("rate.died"):
        return [
            Evidence(
                "share of a layer's units that died in training", max(lost), limit("rate.died")
            )
        ]
    return []


def _bounces(case: Case) -> list[Evidence]:
    """Return how far successive gradients point against each other."""
    bouncing = np.isfinite(case.turning) and case.turning < limit("rate.turning")
    if bouncing and case.final > limit("rate.above_best") * _best(case):
        what = "mean cosine of successive gradients"
        return [Evidence(what, case.turning, limit("rate.turning"), above=False)]
    return []


def _unsettled(case: Case) -> bool:
    """Whether the loss still jumps about at the end, or lies above its best."""
    above = case.final > limit("rate.above_best") * _best(case)
    return bool(case.noise > limit("rate.jumps") or above)


def _best(case: Case) -> float:
    """Return the least loss of any tenth of the training."""
    return min(case.level(i / 10, (i + 1) / 10) for i in range(10))


def _lower(case: Case, ratio: float) -> Remedy:
    """Say how far to go down: to steps of a usual size, and no further than a hundredth."""
    wanted = HEALTHY_RATIO / ratio if np.isfinite(ratio) and ratio > HEALTHY_RATIO else 0.1
    factor = min(max(wanted, limit("rate.most_down")), 0.1)
    return _between(case.lr, factor, 0.3, "Lower")


def _between(lr: float, one: float, other: float, verb: str) -> Remedy:
    """Give a direction and a range: only a trial can tell the rate itself."""
    ends = sorted(_round(lr * factor) for factor in (one, other))
    now = number(lr)
    words = f"{verb} lr={now}: try {number(ends[0])} to {number(ends[1])}."
    return Remedy(words, {"lr": _round(lr * one)})


def too_low(case: Case) -> Iterator[Finding]:
    """Loss that falls steadily but slowly, with steps small against the weights."""
    if not len(case.finite) or case.adversarial or case.broken or case.acts or not case.optimizer:
        return
    yield from _taken_back(case)
    ratio = case.ratio
    small = np.isfinite(ratio) and 0 < ratio < limit("rate.slow")
    if not small or case.steps < 10:
        return
    level = [case.level(i / 5, (i + 1) / 5) for i in range(5)]
    fallen = 1 - level[4] / level[0] if level[0] > 0 else np.nan
    learnt = case.learnt if np.isfinite(case.learnt) else fallen
    risen = level[4] > limit("rate.slow_risen") * level[0]
    if not learnt < limit("rate.slow_learnt") or risen:
        return
    pace = limit("rate.steady") * (level[0] - level[1])
    steady = level[4] <= level[0] and (level[3] - level[4]) >= pace
    falling = steady or _creeps(case)
    tiny = ratio < limit("rate.tiny") * limit("rate.slow")
    if not falling and not tiny:
        return
    higher = min(max(HEALTHY_RATIO / ratio, 3.0), limit("rate.most_up"))
    yield finding(
        "CST102",
        "warning" if learnt > limit("rate.slow_error") else "error",
        0.9 if tiny and falling else 0.75,
        f"The learning rate {number(case.lr)} is too low: steps are {number(ratio, 2)} of the "
        f"weights; the loss fell from {number(case.initial, 3)} to {number(case.final, 3)}.",
        _between(case.lr, higher, min(3.0, higher / 2), "Raise"),
        Evidence("update-to-weight ratio (median)", ratio, limit("rate.slow"), above=False),
        Evidence("share of the loss taken away", learnt, limit("rate.slow_learnt"), above=False),
    )


def _taken_back(case: Case) -> Iterator[Finding]:
    """A schedule that ends the training long before its last step."""
    rates = [(look.step, look.lr) for look in case.looks if np.isfinite(look.lr)]
    last = case.optimizer.lr
    if not rates or not case.poor or not 0 <= last < limit("rate.taken_back") * case.lr:
        return
    peak = max(rates, key=lambda one: one[1])[0]
    over = [s for s, lr in rates if s > peak and lr < limit("rate.hundredth") * case.lr]
    if over and over[0] < limit("rate.half") * case.steps:
        yield finding(
            "CST102",
            "error",
            0.85,
            f"The schedule takes the learning rate from {number(case.lr)} to {number(last, 2)}; "
            f"from step {over[0]} of {case.steps} on it is below a hundredth.",
            "Step the scheduler once an epoch, or let it fall more slowly.",
            Evidence(
                "last learning rate over the highest",
                last / case.lr,
                limit("rate.taken_back"),
                above=False,
            ),
        )


def _creeps(case: Case) -> bool:
    """Whether the validation loss falls all the time, and by little."""
    values = np.asarray([e.loss for e in case.record.evaluations if e.loss is not None])
    if len(values) < 4 or not (values > 0).all():
        return False
    falls = (np.diff(values) < 0).mean() > limit("rate.creeps_steps")
    return bool(falls and values[-1] > limit("rate.creeps_left") * values[0])


def _round(value: float) -> float:
    """Round to one digit, 1, 2, 3 or 5 at the front.

    >>> _round(0.0473), _round(0.00123)
    (0.05, 0.001)
    """
    power = 10.0 ** np.floor(np.log10(value))
    lead = min((1.0, 2.0, 3.0, 5.0, 10.0), key=lambda d: abs(np.log(value / power / d)))
    return float(f"{lead * power:.6g}")


def _words(evidence: Evidence) -> str:
    return f"{evidence.what} is {number(evidence.value, 3)}"
