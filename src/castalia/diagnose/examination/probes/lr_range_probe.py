"""The user's learning rate against others, by short trainings on the same batches.

Rates are tried by factors of ten, up and down from the user's, until the best one is not at an
end. Progress is the fall of the loss; it decides, not the rate itself.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from castalia.diagnose.examination.effort import RATE_LEAST, RATE_STEPS
from castalia.diagnose.examination.examination_subject import Subject
from castalia.diagnose.examination.module_copies import Copy
from castalia.diagnose.examination.outcomes import Outcome, saw, skipped
from castalia.diagnose.examination.trials import seconds_a_step
from castalia.diagnose.finding_record import Evidence, Finding, Remedy, finding
from castalia.diagnose.thresholds import limit
from castalia.utils.text import number

__all__ = ["lr_range_probe"]

NAME = "lr-range"
MOST_TRIALS = 8
LOW, HIGH = 1e-7, 1e2


def lr_range_probe(subject: Subject) -> Outcome:
    """Compare the progress at the user's rate with that at the best rate found."""
    if not subject.trainable:
        return skipped(NAME, "there is nothing to train, or the loss cannot be computed.")
    copy = subject.start()
    rate = _rate(copy)
    if getattr(type(copy.optimizer), "finds_length", False):
        return skipped(NAME, f"{type(copy.optimizer).__name__} finds the length of its steps.")
    with subject.quick(copy, subject.batch_size):
        cost = seconds_a_step(copy, subject.x, subject.y, subject.batch_size, subject.clock)
    steps = min(RATE_STEPS, int(subject.clock.left / (MOST_TRIALS * max(cost, 1e-6))))
    if steps < RATE_LEAST:
        return skipped(NAME, f"steps of {number(cost, 2)} s are too slow for the time given.")
    first, progress = _search(subject, rate, steps)
    if not math.isfinite(first):
        return skipped(NAME, "the loss is not a finite number at any rate.")
    best = _modest(progress)
    numbers = {
        "lr": rate,
        "best": best,
        "progress": progress[rate],
        "best progress": progress[best],
        "losses": {r: first - p for r, p in sorted(progress.items())},
    }
    return saw(NAME, numbers, [_verdict(rate, best, progress, first)])


def _search(subject: Subject, rate: float, steps: int) -> tuple[float, dict[float, float]]:
    """Return the first loss and the fall of the loss by rate."""
    copy = subject.start()
    base = rate if rate > 0 else 1e-3
    still = subject.train(_set(copy, 0.0), 8)
    first = float(np.mean(still))
    if not math.isfinite(first):
        return first, {}
    progress = {rate: _fall(subject, rate, steps, first)}
    for wanted in (_round(base / 10), _round(base * 10)):
        progress[wanted] = _fall(subject, wanted, steps, first)
    while len(progress) < MOST_TRIALS and not subject.clock.over:
        best = max(progress, key=lambda r: progress[r])
        rates = sorted(progress)
        if best not in (rates[0], rates[-1]):
            break
        beyond = _round(best / 10 if best == rates[0] else best * 10)
        if not LOW <= beyond <= HIGH:
            break
        progress[beyond] = _fall(subject, beyond, steps, first)
    return first, progress


def _fall(subject: Subject, rate: float, steps: int, first: float) -> float:
    copy = _set(subject.start(), rate)
    losses = subject.train(copy, steps)
    if not math.isfinite(losses[-1]) or len(losses) < steps:
        return -math.inf  # diverged, or cut short by the clock and not comparable
    return first - float(np.mean(losses[-max(5, steps // 5) :]))


def _modest(progress: dict[float, float]) -> float:
    """Return the lowest rate that is nearly as good as the best one: it is good for longer."""
    most = max(progress.values())
    return min(
        r for r, fall in progress.items() if fall >= min(most, limit("examine.rate_enough") * most)
    )


def _round(rate: float) -> float:
    return float(f"{rate:.6g}")


def _rate(copy: Copy) -> float:
    return float(copy.optimizer.param_groups[0]["lr"])


def _set(copy: Copy, rate: float) -> Copy:
    """Scale the rates of all groups so that the first one has this rate."""
    first = _rate(copy)
    for group in copy.optimizer.param_groups:
        wanted = float(group["lr"]) / first * rate if first > 0 else rate
        old = group["lr"]
        group["lr"] = torch.full_like(old, wanted) if isinstance(old, Tensor) else wanted
    return copy


def _verdict(
    rate: float, best: float, progress: dict[float, float], first: float
) -> Finding | None:
    mine, most = progress[rate], progress[best]
    if most < limit("examine.rate_learnable") * abs(first):
        return None  # nothing is learned at any rate, so the rate is not to blame
    share = mine / most if math.isfinite(mine) else -math.inf
    if rate >= limit("examine.rate_high") * best and share < limit("examine.high_progress"):
        return _found("CST101", rate, best, share, limit("examine.high_progress"), mine)
    if rate <= limit("examine.rate_low") * best and share < limit("examine.low_progress"):
        return _found("CST102", rate, best, share, limit("examine.low_progress"), mine)
    return None


def _found(code: str, rate: float, best: float, share: float, bar: float, mine: float) -> Finding:
    high = code == "CST101"
    far = f"falls {number(max(0.0, 100 * share), 2)} % as far in the same steps as"
    seen = "diverges; it falls" if high and mine <= 0 else far
    evidence = (
        []
        if math.isinf(share)
        else [Evidence("fall of the loss over that at the best rate", share, bar, above=False)]
    )
    severe = mine <= 0 if high else share < limit("examine.low_error")
    return finding(
        code,
        "error" if severe else "warning",
        0.93 if share < bar / 2 else 0.8,
        f"At lr={number(rate, 3)} the loss {seen} at lr={number(best, 2)}.",
        Remedy(f"lr={number(rate, 3)} → {number(best, 2)}", {"lr": float(number(best, 2))}),
        Evidence("learning rate over the best one found", rate / best),
        *evidence,
    )
