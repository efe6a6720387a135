"""CST401 to CST404: fitted too closely, not closely enough, or no better than guessing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from castalia.diagnose.finding_record import Evidence, Finding, Remedy, finding
from castalia.diagnose.record import Evaluation
from castalia.diagnose.rules.case import SAME_GAP, Case
from castalia.diagnose.rules.case_objective import REGRESSIONS
from castalia.diagnose.rules.simple_models import best_of_simple
from castalia.diagnose.thresholds import limit
from castalia.utils.text import number

__all__ = ["no_better", "overfits", "over_regularised", "underfits"]

LEAST_SCORED = 40  # rows that a score is taken to be of
WITHOUT_ZERO = ("unknown", "poisson", "poisson_rate")  # losses of which no ratio says anything


def overfits(case: Case) -> Iterator[Finding]:
    """Training error far below validation error, validation rising."""
    if case.broken or case.adversarial:
        return
    known = [e for e in case.record.evaluations if e.loss is not None and np.isfinite(e.loss)]
    restored = case.record.restored and len(known) > 0
    if restored:  # what came after the best of them was taken back
        known = known[: int(np.asarray([e.loss for e in known], dtype=float).argmin()) + 1]
    # Errors grow dearer with sureness: while hardly any are made, the loss alone says little.
    losses_tell = len(known) >= 3 and not case.nearly_right and not case.few_wrong
    rise, gap = _loss_gap(case, known) if losses_tell else ([], [])
    evidence = [*rise, *gap, *(() if restored else _score_gap(case))]
    if not evidence or case.stuck:
        return
    # A network that fits every row has a gap; it does harm where validation was better before.
    harmless = losses_tell and not rise and (not gap or _at_its_best(case))
    least_at = ""
    if len(known) >= 3:
        best = min(known, key=lambda e: e.loss if e.loss is not None else np.inf)
        least_at = f" The validation loss was lowest after step {best.step}."
    yield finding(
        "CST401",
        "info" if harmless else "warning",
        min(0.92, 0.62 + 0.13 * len(evidence)),
        f"The network overfits: {evidence[0].sentence}.{least_at}",
        Remedy(
            "Stop early, add dropout or weight decay, or gather more data.",
            {"training__patience": 10, "dropout": 0.3, "training__weight_decay": 1e-2},
        ),
        *evidence,
    )


def _at_its_best(case: Case) -> bool:
    """Whether no validation was answered better than the last ones, chance set aside."""
    scores = [e.score for e in case.record.evaluations if e.score is not None]
    if len(scores) < 3 or not 0 <= min(scores) <= max(scores) <= 1:
        return False
    rows = max(case.accuracy(case.record.validation, 8)[1], LEAST_SCORED)
    two = np.convolve(scores, (0.5, 0.5), "valid")  # one lucky epoch is not the best
    last, best = float(two[-1]), float(two.max())
    return bool(last > best - 2 * np.sqrt(best * (1 - best) / rows))


def _loss_gap(case: Case, known: Sequence[Evaluation]) -> tuple[list[Evidence], list[Evidence]]:
    """Return the rise of the validation loss, and how far it ends above the training loss."""
    values = np.asarray([e.loss for e in known], dtype=float)
    smooth = np.convolve(values, np.ones(3) / 3, "valid") if len(values) >= 6 else values
    last = float(values[-max(1, len(values) // 10) :].mean())
    end, least = float(smooth[-1]), float(smooth.min())  # one lucky epoch is no turn
    rise = end / least if least > 0 else 1.0
    train = np.asarray([np.nan if e.train_loss is None else e.train_loss for e in known])
    train = np.maximum(train / (case.head.scale if case.head.scale > 0 else np.nan), 1e-12)
    # Sums over other numbers of rows, or by hand in another way, differ from the start.
    rows = max(1.0, values[0] / train[0]) if case.head.reduction != "mean" else 1.0
    gap = np.nan if case.head.loss in WITHOUT_ZERO else last / train[-1] / rows
    falling = train[-1] < limit("fit.train_falls") * train[int(values.argmin())]
    risen: list[Evidence] = []
    above: list[Evidence] = []
    turned = rise > limit("fit.rise") and end - least > limit("fit.rise_least") * abs(least)
    if turned and _weighs(case, end - least) and (falling or gap > limit("fit.gap")):
        risen.append(Evidence("last validation loss over the lowest", rise, limit("fit.rise")))
    # Right as often as in training, it is only less sure of it.
    if gap > limit("fit.gap") and _matters(case, last) and not case.score_gap < SAME_GAP:
        above.append(Evidence("validation loss over the training loss", gap, limit("fit.gap")))
    return risen, above


def _matters(case: Case, held: float) -> bool:
    """Whether the validation loss is more than a trifle, against guessing."""
    reference = case.guess if np.isfinite(case.guess) else case.initial
    return held > limit("fit.matters") * reference


def _weighs(case: Case, rise: float) -> bool:
    """Whether a rise of the validation loss is more than a trifle, against guessing."""
    return not np.isfinite(case.guess) or rise > limit("fit.rise_share") * case.guess


def _score_gap(case: Case) -> list[Evidence]:
    train, n = case.accuracy(case.record.train, 8)
    held, m = case.accuracy(case.record.validation, 8)
    if m < 40:
        scores = [e.score for e in case.record.evaluations if e.score is not None]
        is_accuracy = (
            bool(scores) and case.task in ("binary", "multiclass") and 0 <= scores[-1] <= 1
        )
        held, m = (float(np.mean(scores[-2:])), 100) if is_accuracy else (np.nan, 0)
    if n < 40 or not m or not np.isfinite(held):
        return []
    gap = train - held
    bar = max(limit("fit.score_gap"), 3 * np.sqrt(held * (1 - held) / m) if m < 100 else 0.0)
    return [Evidence("training accuracy minus that of validation", gap, bar)] if gap > bar else []


def over_regularised(case: Case) -> Iterator[Finding]:
    """A network held back by dropout or decay."""
    if case.broken or not case.steps_seen or not len(case.finite):
        return
    if case.adversarial and not case.smothered:
        return  # how low the loss of a game can go is not known
    if case.head.dropped and not case.learnt > limit("fit.learnt"):
        yield _outputs_dropped(case)
        return
    (layer, p), penalty = case.dropout, _penalty(case)
    harmed = _still_poor(case) or penalty > limit("fit.penalty") or _far_too_strong(case)
    odd = case.adversarial or (case.weight_decay > 1 and not case.well)
    if not harmed and not odd:
        return
    severity = "warning" if harmed or case.adversarial else "info"  # unusual, and it learns
    if p > limit("dropout.strong"):
        inside = f" in `{layer}`" if layer else ""
        yield finding(
            "CST404",
            severity,
            0.85,
            f"Dropout of {number(p)}{inside} leaves too little to learn with.",
            Remedy(f"dropout={number(p)} → 0.2", {"dropout": 0.2}),
            Evidence("dropout", p, limit("dropout.strong")),
            where=layer or None,
        )
    elif case.weight_decay > 1:
        decay = case.optimizer.weight_decay
        yield finding(
            "CST404",
            severity,
            0.87 if severity == "warning" else 0.5,
            f"A weight decay of {number(decay)} pulls the weights to zero faster than the data "
            "push them.",
            Remedy(f"weight_decay={number(decay)} → 1e-4", {"training__weight_decay": 1e-4}),
            Evidence("weight decay", decay, decay / case.weight_decay),
        )
    elif penalty > limit("fit.penalty"):
        yield finding(
            "CST404",
            "warning",
            0.8,
            f"{number(100 * penalty, 2)} % of the loss is a penalty, not an error.",
            "Lower the weight of the penalty.",
            Evidence("share of the loss that is a penalty", penalty, limit("fit.penalty")),
        )


def _outputs_dropped(case: Case) -> Finding:
    return finding(
        "CST404",
        "warning",
        0.87,
        "Dropout falls on the outputs themselves: answers are struck out just before the loss.",
        "Move the dropout in front of the last layer.",
        Evidence("loss at the end", case.final),
        where=case.head.layer,
    )


def _far_too_strong(case: Case) -> bool:
    """Whether dropout or decay is beyond all custom and the loss levelled off too high."""
    flat = case.level(0.7, 1.0) > limit("fit.flat") * case.level(0.4, 0.7)
    learnt = case.learnt if np.isfinite(case.learnt) else 1 - case.final / case.initial
    return bool(flat and learnt < limit("fit.far_learnt") and case.smothered)


def _still_poor(case: Case) -> bool:
    if np.isfinite(case.learnt):
        return bool(case.learnt < limit("fit.held_back"))
    return case.final > limit("fit.held_back_loss") * case.initial


def _penalty(case: Case) -> float:
    """Share of the loss that outputs and targets do not account for, over the last kept batches.

    Where nothing was learnt, over the first ones as well: a penalty that wins shrinks itself.
    """
    if not case.comparable:
        return 0.0
    share = _penalty_between(case, 0.8, 1.0)
    if case.stuck:
        share = max(share, _penalty_between(case, 0.0, 0.1))
    return share if share > 0 and not case.smoothing else 0.0


def _penalty_between(case: Case, start: float, end: float) -> float:
    rows, shares = case.record.train, []
    for step, o, t in zip(rows.steps, rows.outputs, rows.targets, strict=True):
        whole = o is not None and t is not None and len(o) == len(t)
        if whole and start * case.steps <= step < end * case.steps:
            total, data = case.losses[step], case.data_loss(o, t)
            if total - data > limit("fit.penalty_least") * case.guess:
                shares.append(1 - data / total)
            elif np.isfinite(data):
                shares.append(0.0)
    return float(np.median(shares)) if len(shares) >= 2 else 0.0


def underfits(case: Case) -> Iterator[Finding]:
    """A training error above that of a simple model, or high and not falling."""
    if case.broken or case.adversarial or not len(case.finite) or case.steps < 30:
        return
    if case.acts or case.computed or case.head.others:
        return  # the targets are not all that is to be learnt, or no data
    well = case.learnt > limit("fit.learnt")
    if not np.isfinite(case.learnt) or well or case.head.weighted:
        return
    simple, bar = _simple_model(case), limit("fit.underfit")
    before, after = case.level(0.4, 0.7), case.level(0.7, 1.0)
    flat = after > limit("fit.flat") * before
    least = limit("fit.simple_least")
    if simple is not None and simple[1] > max(simple[2] + limit("fit.simple"), least):
        name, theirs, ours = simple
        going = case.descends and not flat  # it has not come to rest: more steps, not more room
        yield finding(
            "CST402",
            "info" if going else "warning",
            0.75 if flat else 0.6,
            f"The network underfits: it explains {number(100 * max(ours, 0.0), 2)} % of its "
            f"training rows, a {name} {number(100 * theirs, 2)} % of rows it has not seen.",
            "Give it more capacity, more steps, another rate or better features.",
            Evidence(f"score of a {name} minus the network's", theirs - ours, limit("fit.simple")),
        )
    elif flat and case.learnt < bar and not case.stuck and case.narrow and not _beats(simple):
        yield finding(
            "CST402",
            "warning",
            0.55,
            f"The training loss stays at {number(case.final, 3)} and no longer falls.",
            "Give the network more capacity or better features.",
            Evidence("share of the guessing loss taken away", case.learnt, bar, above=False),
        )


def _beats(simple: tuple[str, float, float] | None) -> bool:
    """Whether the network does better than simple models: then the rest may well be noise."""
    return simple is not None and simple[2] > simple[1] + limit("fit.beats")


def _simple_model(case: Case) -> tuple[str, float, float] | None:
    """Compare with a linear model and a nearest-neighbour one, on what was kept of the data.

    Scores are shares of what guessing leaves: R², or accuracy above the commonest class's share.
    """
    y = case.targets
    if case.pairs is None or y is None or y.size != len(y):
        return None
    x, y = case.pairs[0].astype(float), case.pairs[1]
    x, first = np.unique(x, axis=0, return_index=True)
    y = y[first]
    if len(x) < 80 or x.shape[1] > 400 or not np.isfinite(x).all():
        return None
    keep = np.random.default_rng(0).permutation(len(x))[:1500]
    x, y = x[keep], y[keep]
    if case.head.loss in REGRESSIONS:
        if case.head.loss != "mse":
            return None
        name, score = best_of_simple(x, y, classes=False)
        return name, score, float(case.learnt)
    counts = np.unique(y, return_counts=True)[1]
    ours = _best_accuracy(case)
    if ours is None or len(counts) < 2 or counts.min() < 4:
        return None
    floor = float(counts.max() / len(y))
    name, score = best_of_simple(x, y, classes=True)
    room = max(1 - floor, 1e-9)
    return name, (score - floor) / room, (ours - floor) / room


def _best_accuracy(case: Case) -> float | None:
    """Return the network's accuracy, in doubt in its favour; None where it is not known."""
    accuracy, n = case.accuracy(case.record.train, 8)
    if not n:
        return None
    accuracy += 2 * np.sqrt(accuracy * (1 - accuracy) / n)  # the few rows kept may be hard ones
    held, m = case.accuracy(case.record.validation, 8)  # without dropout
    scores = [e.score for e in case.record.evaluations[-2:] if e.score is not None]
    return float(max([accuracy, *([held] if m >= 40 else []), *scores]))


def no_better(case: Case) -> Iterator[Finding]:
    """A loss that guessing reaches as well."""
    if case.broken or case.adversarial or case.acts or not np.isfinite(case.guess):
        return
    if case.steps < 20 or case.signed:
        return
    if case.head.weighted or case.guess <= limit("rounding.constant"):
        return  # the plain loss is not what was made small, or all targets are the same
    loss = case.left
    little = case.comparable and case.learnt < limit("fit.little_learnt")
    if little and (held := _least_held(case)) > loss:
        loss = held
    if _answers_rightly(case):
        return  # whatever its loss is made of
    ratio = loss / max(case.guess, 1e-12)
    enough = case.steps >= limit("steps.few") and not case.falls and not _one_of_many(case)
    clear = ratio > limit("fit.guess") and enough
    if ratio > limit("fit.hardly") and np.isfinite(ratio):
        clear, also = clear or case.barren, " Simple models find nothing in the rows either."
        yield finding(
            "CST403",
            "warning" if clear else "info",
            0.9 if case.barren else 0.6 if clear else 0.4,
            f"The loss ends at {number(loss, 3)}; always giving the same answer would cost "
            f"{number(case.guess, 3)}.{also * case.barren}",
            "Look whether inputs and targets belong together: they may have been shuffled apart."
            if case.barren
            else "See the other findings; without any, the inputs may say nothing about the "
            "targets.",
            Evidence(
                "final loss over that of guessing",
                ratio,
                limit("fit.guess" if clear else "fit.hardly"),
            ),
        )


def _one_of_many(case: Case) -> bool:
    """Whether only one call of many that a loss sums is known: too few rows to compare."""
    return not case.comparable and case.head.outputs[:1] == (1,)


def _answers_rightly(case: Case) -> bool:
    """Whether validation rows are answered clearly better than by the commonest class."""
    held, n = case.accuracy(case.record.validation, 8)
    scores = [e.score for e in case.record.evaluations[-2:] if e.score is not None]
    if n < 40 and scores and max(scores) <= 1:
        held, n = min(scores), 100
    if n < 40 or not len(case.shares):
        return False
    by_chance = 3 * np.sqrt(limit("chance.variance") / n)
    return held > case.shares[0] + limit("fit.answers") + by_chance


def _least_held(case: Case) -> float:
    """Return the least validation loss; 0 where none is known."""
    return min((e.loss for e in case.record.evaluations if e.loss is not None), default=0.0)
