"""Can the network memorise a few rows? If not, no amount of training will help."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from castalia.diagnose.examination.effort import TINY_RATES, TINY_ROWS, TINY_STEPS
from castalia.diagnose.examination.examination_subject import Subject
from castalia.diagnose.examination.measures import labels, predictions, row_errors
from castalia.diagnose.examination.module_copies import Copy, adam, without_dropout
from castalia.diagnose.examination.outcomes import Outcome, saw, skipped
from castalia.diagnose.examination.probes.gradient_probe import (
    missing_gradients,
    not_finite,
    out_of_reach,
)
from castalia.diagnose.examination.trials import train_step
from castalia.diagnose.finding_record import Evidence, Finding, finding
from castalia.diagnose.thresholds import limit
from castalia.utils.text import number, plural

__all__ = ["tiny_fit_probe"]

NAME = "tiny-fit"
LOOK_EVERY = 20


@dataclass
class Fit:
    """One attempt: the score reached, its bar, and how it went."""

    score: float
    bar: float
    what: str
    steps: int
    first: float
    last: float
    outputs: object = None

    @property
    def passed(self) -> bool:
        return self.score >= self.bar

    @property
    def unfinished(self) -> bool:
        """Whether the clock ended it before it was clear that it gets nowhere."""
        learning = self.last < limit("examine.tiny_learning") * self.first
        return self.steps < TINY_STEPS // (1 if learning else 4)


def tiny_fit_probe(subject: Subject) -> Outcome:
    """Fit a few rows from the module's own start, or from weights drawn again if it has learned."""
    if subject.problem is not None:
        return skipped(NAME, f"the module or its loss cannot be run ({subject.problem}).")
    if not subject.trainable:
        return saw(NAME, {}, [_nothing_to_train(subject)])
    causes = [not_finite(subject), missing_gradients(subject)]
    index = _distinct(subject)
    x, y = subject.x[index], subject.y[index]
    if not bool(torch.isfinite(x).all() if x.is_floating_point() else True):
        return saw(NAME, {}, causes)
    if len(x) < 2 or _flat(y):
        return saw(NAME, {}, causes) if any(causes) else skipped(NAME, "too few different rows.")
    own = not subject.restarts
    with subject.clock.share(0.6):
        fit = _attempts(subject, x, y, fresh=not own)
    numbers = {fit.what: fit.score, "bar": fit.bar, "steps": fit.steps, "rows": len(x)}
    if fit.passed:
        return saw(NAME, numbers, causes)
    if not math.isfinite(fit.last):
        return saw(NAME, numbers, [*causes, None if any(causes) else _broke(fit)])
    if fit.unfinished:
        late = f"time was up after {plural(fit.steps, 'step')}"
        return Outcome(NAME, numbers, tuple(c for c in causes if c), (f"{NAME}: {late}.",), False)
    again = _attempts(subject, x, y, fresh=own)
    if again.passed:
        subject.restart = own  # other trials had better not begin from these weights
        causes.append(_bad_start(subject, fit, again) if own else None)
        return saw(NAME, numbers | {"from fresh weights": again.score}, causes)
    specific = out_of_reach(subject, x, y, again.outputs)
    return saw(NAME, numbers, [*causes, specific or (None if any(causes) else _failed(fit, x))])


def _attempts(subject: Subject, x: Tensor, y: Tensor, fresh: bool) -> Fit:
    """Try several rates of Adam in the time there is; return the best attempt."""
    best: Fit | None = None
    for count, rate in enumerate(TINY_RATES):
        copy = subject.start(fresh=fresh)
        without_dropout(copy.net)
        trained = [p for p in copy.net.parameters() if p.requires_grad]
        copy.optimizer = adam(trained, rate)
        with (
            subject.clock.share(1 / (len(TINY_RATES) - count)),
            subject.quick(copy, len(x)),
        ):
            fit = _fit(subject, copy, x, y)
        if best is None or fit.score > best.score or not math.isfinite(best.score):
            best = fit
        if best.passed:
            break
    return best  # type: ignore[return-value]


def _fit(subject: Subject, copy: Copy, x: Tensor, y: Tensor) -> Fit:
    copy.net.train()
    losses: list[float] = []
    fit = Fit(-math.inf, limit("examine.tiny_accuracy"), "accuracy", 0, math.nan, math.nan)
    for step in range(1, TINY_STEPS + 1):
        losses.append(train_step(copy, x, y))
        last = step == TINY_STEPS or subject.clock.over or not math.isfinite(losses[-1])
        if step % LOOK_EVERY == 0 or last:
            fit = _look(subject, copy, x, y, losses)
        if fit.passed or last:
            break
    return fit


def _look(subject: Subject, copy: Copy, x: Tensor, y: Tensor, losses: list[float]) -> Fit:
    """Score the rows with statistics of this batch: running averages lag behind."""
    with torch.no_grad():
        outputs = copy.net(x.clone())
    first, last, steps = losses[0], losses[-1], len(losses)
    errors = row_errors(
        subject.task,
        labels(subject.task, y),
        predictions(subject.task, subject.kind, outputs, y),
    )
    if errors is None:
        if subject.task in ("lm", "seq"):
            fall = last / first if first > 0 else 1.0
            return Fit(
                1 - fall, 1 - limit("examine.tiny_fall"), "fall of the loss", steps, first, last
            )
        fall = (first - last) / max(abs(first), 1e-12)
        return Fit(fall, limit("examine.tiny_stuck"), "fall of the loss", steps, first, last)
    score = 1 - float(errors.mean())
    if subject.task == "regression":
        spread = float(np.var(np.asarray(labels(subject.task, y)), axis=0).mean())
        score = 1 - float(errors.mean()) / max(spread, 1e-30)
        return Fit(score, limit("examine.tiny_r2"), "R²", steps, first, last, outputs)
    return Fit(score, limit("examine.tiny_accuracy"), "accuracy", steps, first, last, outputs)


def _distinct(subject: Subject) -> Tensor:
    """Choose a few rows that differ in x, turn about from every class."""
    flat = subject.x.reshape(len(subject.x), -1)
    order = np.random.default_rng(subject.seed).permutation(len(flat))
    _, first = np.unique(flat[torch.from_numpy(order)].cpu().numpy(), axis=0, return_index=True)
    different = order[np.sort(first)]
    y = subject.labels
    if y is not None and subject.task in ("binary", "multiclass"):
        turn = np.zeros(len(different))
        for label in np.unique(y[different]):
            mine = y[different] == label
            turn[mine] = np.arange(mine.sum())
        different = different[np.argsort(turn, kind="stable")]
    return torch.from_numpy(different[:TINY_ROWS].copy()).to(subject.x.device)


def _flat(y: Tensor) -> bool:
    """Whether all targets are the same."""
    return bool((y == y[:1]).all())


def _nothing_to_train(subject: Subject) -> Finding:
    count = sum(1 for _ in subject.module.parameters())
    why = "has no parameters" if count == 0 else "has no parameter that requires a gradient"
    return finding(
        "CST110",
        "error",
        0.98,
        f"The module {why}: there is nothing to train.",
        "Assign layers as attributes of the module (lists as nn.ModuleList)."
        if count == 0
        else "Set requires_grad_(True) on what is to be trained.",
        Evidence("trainable parameters", 0, 1, above=False),
    )


def _broke(fit: Fit) -> Finding:
    return finding(
        "CST105",
        "error",
        0.9,
        f"The loss of {TINY_ROWS} rows is not a number after {plural(fit.steps, 'step')}, "
        "at small rates too.",
        "Look for a logarithm of 0, a division by 0 or a square root at 0; add a small number "
        "inside.",
        Evidence("steps until the loss was not finite", fit.steps),
    )


def _bad_start(subject: Subject, fit: Fit, again: Fit) -> Finding:
    alike = _alike(subject)
    if alike is not None:
        return finding(
            "CST108",
            "error",
            0.9,
            f"All units of `{alike}` begin with the same weights and stay alike: the network "
            f"cannot memorise {TINY_ROWS} rows, as it can from weights drawn again.",
            "Draw the weights at random.",
            Evidence(f"{fit.what} from its own weights", fit.score, fit.bar, above=False),
            Evidence(f"{again.what} from weights drawn again", again.score),
            where=alike,
        )
    return finding(
        "CST109",
        "error",
        0.85,
        f"From its own weights the network cannot memorise {TINY_ROWS} rows; from "
        "weights drawn again by its layers it can.",
        "Leave the initialisation to the layers, or use the scheme that fits the activation.",
        Evidence(f"{fit.what} from its own weights", fit.score, fit.bar, above=False),
        Evidence(f"{again.what} from weights drawn again", again.score),
    )


def _alike(subject: Subject) -> str | None:
    """Return the first weight matrix all of whose rows are the same."""
    for name, p in subject.module.named_parameters():
        if p.ndim >= 2 and p.shape[0] > 1 and bool((p == p[:1]).all()):
            return name
    return None


def _failed(fit: Fit, x: Tensor) -> Finding:
    moved = abs(fit.first - fit.last) / max(abs(fit.first), 1e-12)
    still = " The loss hardly moves." if moved < limit("examine.tiny_moves") else ""
    return finding(
        "CST402",
        "error",
        0.85,
        f"The tiny-fit test fails: {plural(fit.steps, 'step')} do not let the network "
        f"memorise {len(x)} rows ({fit.what} {number(fit.score, 2)}).{still} It is too small, its "
        "gradients are wrong, or its outputs cannot take the values of the targets.",
        "Check the output layer against the loss, then the gradients of layers of your own, then "
        "widen the network.",
        Evidence(f"{fit.what} on {len(x)} rows", fit.score, fit.bar, above=False),
        Evidence("loss at the end", fit.last),
    )
