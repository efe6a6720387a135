"""Whether the network does better without its dropout and weight decay."""

from __future__ import annotations

from torch import nn
from torch.optim import AdamW

from castalia.diagnose.examination.examination_subject import Subject
from castalia.diagnose.examination.measures import difference
from castalia.diagnose.examination.module_copies import Copy, without_dropout
from castalia.diagnose.examination.outcomes import Outcome, saw, skipped
from castalia.diagnose.examination.trials import levelled
from castalia.diagnose.finding_record import Evidence, Finding, Remedy, finding
from castalia.diagnose.thresholds import limit
from castalia.utils.text import number

__all__ = ["regularisation"]

NAME = "regularisation"
STEPS, LEAST_STEPS = 600, 150


def regularisation(subject: Subject) -> Outcome:
    """Train with and without the penalties, where they are strong enough to be suspected."""
    if not subject.trainable or subject.labels is None:
        return saw(NAME, {})
    copy = subject.start()
    dropout, decay = _dropout(copy.net), _decay(copy)
    numbers = {"dropout": dropout, "weight decay": decay}
    if dropout < limit("examine.dropout") and decay < limit("examine.decay"):
        return saw(NAME, numbers)
    free = _without(subject.start())
    if subject.trained:
        bound: Copy | None = subject.learned.copy
    else:
        with subject.clock.share(0.5):
            losses = subject.train(copy, STEPS)
        bound = copy if levelled(losses) else None
    if bound is None:
        return skipped(NAME, "training was still under way when its time was up.")
    if len(subject.train(free, STEPS)) < LEAST_STEPS:
        return skipped(NAME, "the time was too short to train a copy.")
    return saw(NAME, numbers, [_compare(subject, bound, free, dropout, decay)])


def _dropout(net: nn.Module) -> float:
    """Return the highest rate of dropout."""
    rates = [part.p for part in net.modules() if isinstance(part, nn.modules.dropout._DropoutNd)]
    rates += [d for part in net.modules() if isinstance(d := getattr(part, "dropout", None), float)]
    return float(max(rates, default=0.0))


def _decay(copy: Copy) -> float:
    """Return the weight decay as part of the gradient; decoupled decay is scaled by the rate."""
    group = max(copy.optimizer.param_groups, key=lambda g: g.get("weight_decay") or 0.0)
    decay = float(group.get("weight_decay") or 0.0)
    decoupled = isinstance(copy.optimizer, AdamW) or group.get("decoupled_weight_decay", False)
    return decay * float(group["lr"]) if decoupled else decay


def _without(copy: Copy) -> Copy:
    without_dropout(copy.net)
    for group in copy.optimizer.param_groups:
        if "weight_decay" in group:
            group["weight_decay"] = 0.0
    return copy


def _compare(
    subject: Subject, bound: Copy, free: Copy, dropout: float, decay: float
) -> Finding | None:
    sides = [(subject.x, subject.y)]
    if subject.vx is not None and subject.vy is not None:
        sides.append((subject.vx, subject.vy))
    rates = []
    for x, y in sides:
        a, b = subject.errors(bound, x, y), subject.errors(free, x, y)
        if a is None or b is None:
            return None
        gap, sure = difference(a, b)
        low = float(b.mean()) < limit("examine.regular_better") * float(a.mean())
        if not low or gap < limit("examine.underfit_by") or sure < limit("examine.sure"):
            return None
        rates.append((float(a.mean()), float(b.mean())))
    return _found(rates, dropout, decay)


def _found(rates: list[tuple[float, float]], dropout: float, decay: float) -> Finding:
    strong = []
    changes: dict[str, float] = {}
    if dropout >= limit("examine.dropout"):
        strong.append(f"dropout={number(dropout, 2)} → {number(min(0.2, dropout / 2), 2)}")
        changes["dropout"] = min(0.2, dropout / 2)
    if decay >= limit("examine.decay"):
        strong.append(f"weight_decay={number(decay, 2)} → 1e-4")
    (a, b), (c, d) = rates[0], rates[-1]
    return finding(
        "CST404",
        "warning",
        0.85,
        f"Without dropout and weight decay the training error falls from {number(a, 2)} to "
        f"{number(b, 2)}, the validation error from {number(c, 2)} to {number(d, 2)}."
        if len(rates) > 1
        else f"Without dropout and weight decay the training error falls from {number(a, 2)} to "
        f"{number(b, 2)}.",
        Remedy(", ".join(strong), changes),
        Evidence(
            "error without the penalties over that with them",
            b / a,
            limit("examine.regular_better"),
            False,
        ),
    )
