"""CST101 and CST102: a learning rate too high or too low."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from castalia.diagnose.finding_record import Evidence, Finding, Remedy, finding
from castalia.diagnose.rules.case import Case
from castalia.diagnose.thresholds import limit
from castalia.utils.text import number

__all__ = ["below_custom", "too_high", "too_low"]

AT_FIRST = 8  # looks among which a step may throw the network where nothing moves
FEWEST = 10  # steps after which a low rate is one
SCALED = ("adam", "rmsprop")  # whose steps are as long as the rate, so that one rate suits many


def too_high(case: Case) -> Iterator[Finding]:
    """Steps that are too long by what they do, or by all custom."""
    yield from list(_seen_high(case)) or _above_custom(case)


def too_low(case: Case) -> Iterator[Finding]:
    """Steps that are too short by what they do, or by all custom."""
    yield from list(_seen_low(case)) or _below_custom(case)


def _seen_high(case: Case) -> Iterator[Finding]:
    """Loss that grows, bounces or leaps, with steps that promise more than they can keep."""
    if not len(case.finite) or not case.steps_seen:
        return
    if _loss_says_nothing(case):
        yield from _beyond_all(case)
        return
    tries = _tries(case)
    evidence = [*_diverged(case), *(() if tries else (*_leapt(case), *_bounces(case)))]
    ratio = case.early_ratio if np.isfinite(case.early_ratio) else case.ratio
    small = ratio < limit("rate.small") and not case.overshoots
    if small and case.spike > limit("gradient.spike"):
        return  # steps were small until one gradient exploded
    leaps = [] if tries else _long(case, ratio)
    if case.stuck and case.longest > limit("rate.wild") and not tries:
        leaps = leaps or _stands_still(case)  # the first steps left no gradient to measure by
    large, evidence = bool(leaps), [*evidence, *leaps]
    died = _died(case) if ratio > limit("rate.small") else []
    evidence += died
    had_learnt = case.final < limit("rate.had_learnt") * case.initial
    broken = case.broken and not had_learnt
    # How low the loss of a code, or of numbers drawn in every step, can go is not known.
    poor = case.poor and case.task != "vae" and not case.computed
    thrown = any(one.value > limit("rate.thrown") for one in _leapt(case)) and not tries
    harmed = poor or broken or case.stuck or thrown
    if case.well:
        return
    if not harmed and not large and case.level(0.1, 0.3) < case.start:
        # It leapt and units died, but what is left recovered at once.
        passing = [*_leapt(case), *died]
        evidence = [one for one in evidence if one not in passing]
    weight = len(evidence)
    if weight == 0 or (weight == 1 and not (harmed and (large or died or broken or thrown))):
        return
    if not harmed and (weight < 2 or case.computed or not _unsettled(case)):
        return  # what an agent reckons with never settles
    if weight == 1 and large and not broken and (case.falls or case.descends or _settles(case)):
        return  # long steps that lead down, or are long at the start only
    sure = min(0.97, 0.45 + 0.17 * weight + (0.1 if large and harmed else 0.0))
    severity = "error" if harmed else "warning"
    yield finding(
        "CST101",
        severity,
        sure,
        f"{_rate(case)} is too high: {evidence[0].sentence}.",
        _lower(case),
        *evidence,
    )


def _loss_says_nothing(case: Case) -> bool:
    """Whether it is the loss of a game, an agent or a likelihood, which need not fall to zero."""
    return case.adversarial or case.acts or (case.signed and not case.broken)


def _beyond_all(case: Case) -> Iterator[Finding]:
    """Steps that no network can take, whatever its loss is.

    They promise more than the whole loss, throw the weights where no gradient is left, or take all
    of them far away.
    """
    evidence = []
    leap = float(np.fmax(case.promise, case.early_promise))
    if leap > 1 and case.adversarial and not case.signed:
        evidence = [Evidence("share of the loss that one step promises", leap, 1.0)]
    elif case.longest > limit("rate.ratio"):
        what = "largest update-to-weight ratio of the first steps"
        evidence = [*_stands_still(case), *_went_far(case)]
        evidence += [Evidence(what, case.longest, limit("rate.ratio"))] if evidence else []
    if evidence:
        words = f"{_rate(case)} is too high: {evidence[0].sentence}."
        yield finding("CST101", "error", 0.9, words, _lower(case), *evidence)


def _stands_still(case: Case) -> list[Evidence]:
    """Return what is left of the gradient in the second half, if nothing is.

    A judge that is right about everything has none either.
    """
    if not case.signed and case.final < limit("rate.had_learnt") * case.initial:
        return []
    first, late = case.totals[:AT_FIRST], case.totals[len(case.totals) // 2 :]
    known = len(late) >= 3 and not np.isnan(first).all() and not np.isnan(late).all()
    left = float(np.nanmedian(late) / np.nanmax(first)) if known else np.nan
    bar = limit("rate.still")
    found = Evidence("gradient later over that of the start", left, bar, above=False)
    return [found] if left < bar else []


def _went_far(case: Case) -> list[Evidence]:
    """Return how far the weights of every layer went, against their size at the start or usually.

    Weights that begin smaller than usual must grow.
    """
    far, bar = case.travelled * np.minimum(1, case.began), limit("rate.far")
    way = float(min(far)) if len(far) > 1 and case.longest > limit("rate.wild") else 0.0
    found = Evidence("least way of a layer's weights over their size", way, bar)
    return [found] if way > bar else []


def _tries(case: Case) -> bool:
    """Whether losses are of trials, of which the optimizer keeps the best."""
    return bool(case.optimizer) and case.optimizer.kind == "LBFGS"


def _rate(case: Case) -> str:
    """Name the rate; steps made by hand have one that is not known."""
    return f"The learning rate {number(case.lr)}" if case.optimizer else "The learning rate"


def _long(case: Case, ratio: float) -> list[Evidence]:
    """Return how much of the loss a step promises; where unknown, its length over the weights'."""
    leap = float(np.fmax(case.promise, case.early_promise))
    thrown = float(case.promises[:AT_FIRST].max()) if case.stuck and len(case.promises) else 0.0
    if thrown > 1 and not leap > limit("rate.leap"):  # and from there on nothing moves
        what, value, bar = "share of the loss that an early step promises", thrown, 1.0
    elif np.isfinite(leap):
        what, value, bar = "share of the loss that one step promises", leap, limit("rate.leap")
    else:
        # Weights of a linear model begin near zero, so their first steps are large against them.
        what, bar = "update-to-weight ratio (median)", limit("rate.ratio")
        value = ratio if _layered(case) else np.nan
    return [Evidence(what, value, bar)] if value > bar else []


def _layered(case: Case) -> bool:
    """Whether there are several weight matrices."""
    return sum(len(w.shape) >= 2 for w in case.record.weights) > 1


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


def _settles(case: Case) -> bool:
    """Whether steps that promise much come at the start only, and the loss comes to rest below.

    Where little is learnt after steps of a third of the weights, they were thrown there.
    """
    later = case.promise < limit("rate.leap") and case.final < case.start
    thrown = case.poor and case.longest > limit("rate.wild")
    return bool(later and not thrown and not _unsettled(case))


def _best(case: Case) -> float:
    """Return the least loss of any tenth of the training."""
    return min(case.level(i / 10, (i + 1) / 10) for i in range(10))


def _lower(case: Case) -> Remedy:
    """Say how far to go down: until steps promise as much as usual, or to a hundredth."""
    leap = float(np.fmax(case.promise, case.early_promise))
    wanted = limit("rate.usual_promise") / leap if leap > 0 else 0.1
    return _between(case, min(max(wanted, limit("rate.most_down")), 0.1), 0.3, "Lower")


def _between(case: Case, one: float, other: float, verb: str) -> Remedy:
    """Give a direction and a range: only a trial can tell the rate itself."""
    if not case.optimizer or not case.lr > 0:
        low, high = sorted(max(f, 1 / f) for f in (one, other))
        return Remedy(f"{verb} the learning rate {number(low, 2)} to {number(high, 2)} times.")
    ends = sorted(_round(case.lr * factor) for factor in (one, other))
    words = f"{verb} lr={number(case.lr)}: try {number(ends[0])} to {number(ends[1])}."
    return Remedy(words, {"lr": _round(case.lr * one)})


def _seen_low(case: Case) -> Iterator[Finding]:
    """Loss that falls steadily but slowly, with steps that promise next to nothing."""
    if not len(case.finite) or case.broken or not case.steps_seen:
        return
    if _loss_says_nothing(case):
        yield from _hardly_moves(case)
        return
    if case.optimizer:
        yield from _taken_back(case)
    evidence, tiny = _short(case)
    if evidence is None and case.stuck and case.steps >= limit("rate.many_steps"):
        yield from _as_drawn(case)  # single rows promise much of what the next ones take back
    if evidence is None or case.steps < FEWEST:
        return
    one_slope = case.turning > limit("end.same_slope")  # longer steps lead where more would
    if (case.stuck or _rescaled(case)) and _goes_far(case) and not one_slope:
        return  # the weights go far, and little comes of it: longer steps would not help
    level = [case.level(i / 5, (i + 1) / 5) for i in range(5)]
    fallen = 1 - level[4] / level[0] if level[0] > 0 else np.nan
    learnt = case.learnt if np.isfinite(case.learnt) else fallen
    risen = level[4] > limit("rate.slow_risen") * level[0]
    if not learnt < limit("rate.slow_learnt") or risen:
        return
    pace = limit("rate.steady") * (level[0] - level[1])
    steady = level[4] <= level[0] and (level[3] - level[4]) >= pace
    by_plan = case.annealed and level[4] <= level[0]  # the end is level whatever the rate
    falling = steady or by_plan or _creeps(case)
    if not falling and not tiny:
        return
    higher = limit("rate.usual_promise") / max(case.promise, 1e-12)
    higher = min(max(np.nan_to_num(higher, nan=10.0), 3.0), limit("rate.most_up"))
    yield finding(
        "CST102",
        _slow_severity(learnt),
        0.93 if tiny and falling else 0.88,
        f"{_rate(case)} is too low: {evidence.sentence}; the loss went from "
        f"{number(case.initial, 3)} to {number(case.final, 3)}.",
        _between(case, higher, min(3.0, higher / 2), "Raise"),
        evidence,
        Evidence("share of the loss taken away", learnt, limit("rate.slow_learnt"), above=False),
    )


def _hardly_moves(case: Case) -> Iterator[Finding]:
    """A game or an agent, whose loss need not fall, that is still what it was drawn as."""
    many = case.steps >= limit("rate.many_steps")
    least = limit("rate.promise_long" if many else "rate.promise")
    if case.signed or not case.promise >= least:  # or not known
        yield from _as_drawn(case)


def _as_drawn(case: Case) -> Iterator[Finding]:
    """Weights that went nowhere in many steps."""
    if case.steps < limit("steps.few") or not len(case.travelled) or _was_trained(case):
        return
    travelled, bar = float(max(case.travelled)), limit("rate.travelled")
    bar = limit("rate.travelled_signed") if case.signed else bar  # of which no step is a share
    if not 0 < travelled < bar:
        return
    evidence = Evidence(
        "distance of the weights from their start over their size",
        travelled,
        bar,
        above=False,
    )
    yield finding(
        "CST102",
        "warning",
        0.8,
        f"{_rate(case)} is too low: after {case.steps} steps the network is hardly another than at "
        "the start.",
        _between(case, limit("rate.most_up"), 3.0, "Raise"),
        evidence,
    )


def _was_trained(case: Case) -> bool:
    """Whether normalising layers no longer scale by 1: a network that is trained on goes slowly."""
    first = case.looks[0].weights if case.looks else {}
    scales = [
        first.get(w.name, 1.0)
        for w in case.record.weights
        if "Norm" in w.kind and w.name.endswith("weight")
    ]
    return any(abs(scale - 1) > limit("rate.scales") for scale in scales)


def _slow_severity(learnt: float) -> str:
    """Return how bad it is to be slow; where much is learnt all the same it is a remark."""
    if learnt > limit("rate.slow_remark"):
        return "info"
    return "warning" if learnt > limit("rate.slow_error") else "error"


def _goes_far(case: Case) -> bool:
    """Whether steps are long, and have led anywhere."""
    near = len(case.travelled) and max(case.travelled) < limit("rate.travelled")
    return bool(case.ratio > limit("rate.long_enough") and not near)


def _rescaled(case: Case) -> bool:
    """Whether steps are as long as the rate, however small the gradients are."""
    return bool(case.optimizer) and "adam" in case.optimizer.kind.lower()


def _has_custom(case: Case) -> bool:
    """Whether it is an optimizer whose usual rates hardly depend on what is trained."""
    return bool(case.optimizer) and any(name in case.optimizer.kind.lower() for name in SCALED)


def _above_custom(case: Case) -> Iterator[Finding]:
    """A rate that nobody gives several layers, unless most was learnt all the same."""
    bar = limit("rate.custom_most")
    if not _has_custom(case) or not _layered(case) or not case.lr > bar or not case.steps_seen:
        return
    if case.learnt > limit("rate.slow_learnt"):
        return
    evidence = Evidence(f"learning rate of {case.optimizer.kind}", case.lr, bar)
    words = f"{_rate(case)} is higher than networks of several layers are trained with."
    severity = "info" if np.isfinite(case.learnt) and not case.poor else "warning"
    yield finding("CST101", severity, 0.75, words, _lower(case), evidence)


def below_custom(case: Case) -> bool:
    """Whether nobody gives so low a rate to weights that are still random.

    Networks that are trained on have such rates, and the first steps of a warm-up.
    """
    if not _has_custom(case) or not 0 < case.lr < limit("rate.custom_least"):
        return False
    rates = [look.lr for look in case.looks if np.isfinite(look.lr)]
    rises = len(rates) > 1 and rates[-1] > max(rates[0], limit("rate.half") * max(rates))
    return not rises and not _was_trained(case)


def _below_custom(case: Case) -> Iterator[Finding]:
    """A rate that nobody gives random weights, unless most was learnt all the same."""
    if not below_custom(case) or case.steps < FEWEST or case.broken or not case.steps_seen:
        return
    if case.learnt > limit("rate.slow_learnt"):
        return
    bar = limit("rate.custom_least")
    evidence = Evidence(f"learning rate of {case.optimizer.kind}", case.lr, bar, above=False)
    words = f"{_rate(case)} is lower than networks are trained with that begin at random weights."
    severity = "error" if case.stuck else "warning"
    remedy = _between(case, limit("rate.most_up"), 3.0, "Raise")
    yield finding("CST102", severity, 0.85, words, remedy, evidence)


def _short(case: Case) -> tuple[Evidence | None, bool]:
    """Return what shows steps too short, at the start as well as later, and whether by far."""
    promise = float(np.fmax(case.promise, case.early_promise))
    if _tries(case) or not np.isfinite(promise):
        what, value, bar = "update-to-weight ratio (median)", case.ratio, limit("rate.slow")
    else:
        what, value = "share of the loss that one step promises", promise
        # Few steps may only have been too few; but on a straight line longer ones lead there too.
        straight = case.turning > limit("rate.straight")
        many = case.steps >= limit("rate.many_steps") or straight
        bar = limit("rate.promise_long" if many else "rate.promise")
    if not 0 < value < bar:
        return None, False
    return Evidence(what, value, bar, above=False), value < limit("rate.tiny") * bar


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
