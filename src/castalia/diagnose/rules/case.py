"""A record seen as a case: the quantities that several rules ask for, worked out once."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from castalia.diagnose.record import Record
from castalia.diagnose.rules.case_objective import BINARY_LOSSES, FEW, LATE, Objective, single
from castalia.diagnose.rules.distinct_rows import distinct_rows
from castalia.diagnose.rules.simple_models import best_of_simple, projected
from castalia.diagnose.thresholds import limit

__all__ = ["Case"]

LEAST_ROWS = 16  # in a loss that says something about the network rather than about its rows
TRIFLE = limit("case.trifle")
THRIVES = 20  # steps
BARREN, MOST_ROWS = 150, 1500  # rows in which a simple model would find something
MEDIAN = 1.25  # standard error of a median over that of a mean
SAME_GAP = limit("case.same_gap")
NEVER_NEGATIVE = ("mse", "l1", "smooth_l1", "huber", "bce", "bce_logits", "cross_entropy")


class Case(Objective):
    """What the rules read: the network, the rows that were kept, and how the loss went.

    Parameters
    ----------
    record
        What was seen of the training.
    """

    def __init__(self, record: Record) -> None:
        self.record, self.looks = record, record.looks
        self.weights = {w.name: w for w in record.weights}

    # ------------------------------------------------------------------ the loss

    @cached_property
    def losses(self) -> np.ndarray:
        """Loss of each step, as the loss function gave it."""
        scale = self.head.scale if self.head.scale > 0 else 1.0
        return np.asarray(self.record.losses, dtype=float) / scale

    @cached_property
    def finite(self) -> np.ndarray:
        """Losses that are numbers."""
        return self.losses[np.isfinite(self.losses)]

    @cached_property
    def lost(self) -> np.ndarray:
        """Whether the loss of each step is no number; one that is not known is not lost."""
        lost = ~np.isfinite(self.losses)
        lost[[step for step in self.record.unknown if step < len(lost)]] = False
        return lost

    @cached_property
    def steps(self) -> int:
        """Steps taken."""
        return len(self.losses)

    @cached_property
    def initial(self) -> float:
        """Loss at the start: of the first step."""
        return float(self.finite[0]) if len(self.finite) else np.nan

    @cached_property
    def pooled(self) -> int:
        """Steps whose losses must be taken together to be of enough rows to be compared."""
        sizes = [look.size for look in self.looks if look.size]
        return max(1, round(LEAST_ROWS / float(np.median(sizes)))) if sizes else 1

    @cached_property
    def start(self) -> float:
        """Loss at the start that others can be held against.

        The first may be of a lucky row, or next to nothing in a network trained before.
        """
        if not len(self.finite):
            return self.initial
        lucky = self.pooled > 1
        if np.isfinite(self.guess):
            return max(self.initial, (1.0 if lucky else TRIFLE) * self.guess)
        return max(self.initial, float(np.median(self.finite[: self.pooled])))

    @cached_property
    def final(self) -> float:
        """Loss at the end: mean of the last twentieth, at least five steps."""
        count = max(5, len(self.finite) // 20)
        return float(self.finite[-count:].mean()) if len(self.finite) else np.nan

    def level(self, start: float, end: float) -> float:
        """Return the median loss over a part of the training, given as fractions of it."""
        n = len(self.finite)
        part = self.finite[int(start * n) : max(int(end * n), int(start * n) + 1)]
        return float(np.median(part)) if len(part) else np.nan

    @cached_property
    def noise(self) -> float:
        """Spread of the loss from step to step in the second half, relative to its mean."""
        late = self.finite[len(self.finite) // 2 :]
        if len(late) < 8:
            return np.nan
        return float(np.diff(late).std() / np.sqrt(2) / max(abs(late.mean()), 1e-12))

    @cached_property
    def fit_loss(self) -> float:
        """Loss of the data alone on the last kept batches: no penalty, no weights, a plain mean."""
        rows = self.record.train
        late = [
            loss
            for step, o, t in zip(rows.steps, rows.outputs, rows.targets, strict=True)
            if step >= limit("case.last_quarter") * self.steps - 1
            and np.isfinite(loss := self.data_loss(o, t))
        ]
        return float(np.mean(late)) if late else np.nan

    @cached_property
    def learnt(self) -> float:
        """Share of the loss of guessing that training took away; NaN where unknown."""
        if (
            not np.isfinite(self.guess)
            or self.guess <= limit("rounding.constant")
            or not len(self.finite)
            or self.adversarial  # a loss that another network works against measures nothing
        ):
            return np.nan
        return 1.0 - (self.left - self.floor) / max(self.guess - self.floor, 1e-9)

    @cached_property
    def left(self) -> float:
        """Loss of the data at the end, that can be held against guessing; NaN where unknown."""
        if (self.pooled > 1 or self._kept_in_part) and self.comparable:
            # The losses are of more rows than were kept.
            return float(self.finite[-max(5, len(self.finite) // 4) :].mean())
        if np.isfinite(self.fit_loss):
            return self.fit_loss
        return self.final if self.comparable else np.nan

    @cached_property
    def _kept_in_part(self) -> bool:
        """Whether only the first answers of a batch were kept: of texts, those of few sentences."""
        kept = zip(self.record.train.outputs, self.record.train.targets, strict=True)
        return any(o is not None and t is not None and len(o) < len(t) for o, t in kept)

    @cached_property
    def stuck(self) -> bool:
        """Whether the loss ends where guessing would leave it, or worse, or hardly moved."""
        if np.isfinite(self.learnt):
            return self.learnt < limit("case.stuck")
        if not len(self.finite) or self.adversarial:
            return False
        return self.final > limit("case.stuck_loss") * self.initial and self.initial > 0

    @cached_property
    def poor(self) -> bool:
        """Whether much of the loss of guessing is still there."""
        if np.isfinite(self.learnt):
            return self.learnt < limit("case.poor")
        return self.stuck

    @cached_property
    def well(self) -> bool:
        """Whether nearly all of the loss of guessing is gone: what might do harm has done none."""
        return bool(self.learnt > limit("case.well")) and not self.broken

    @cached_property
    def falls(self) -> bool:
        """Whether the loss still falls in the last fifth, by more than its noise may give."""
        return self.fall > max(self.by_chance, limit("end.descends"))

    @cached_property
    def fall(self) -> float:
        """Relative fall of the loss over the last fifth of the steps."""
        before, after = self.level(0.6, 0.8), self.level(0.8, 1.0)
        return (before - after) / before if before > 0 else 0.0

    @cached_property
    def by_chance(self) -> float:
        """Fall that the noise of the losses alone may well give: two standard errors."""
        window = max(len(self.finite) // 5, 1)
        return float(2 * MEDIAN * np.nan_to_num(self.noise) * np.sqrt(2 / window))

    @cached_property
    def signed(self) -> bool:
        """Whether a loss falls below zero: how far it is above says nothing then.

        Errors and cross-entropies never do, so what was taken for one is something else.
        """
        if self.head.loss not in ("unknown", *NEVER_NEGATIVE) or not len(self.finite):
            return False
        return bool((self.finite < 0).mean() > limit("case.signed"))

    @cached_property
    def thrives(self) -> bool:
        """Whether the loss descends without jumping about."""
        return self.descends and not self.noise > limit("rate.jumps")

    @cached_property
    def descends(self) -> bool:
        """Whether the loss fell from each fifth of the training to the next, and clearly in all."""
        levels = np.asarray([self.level(i / 5, (i + 1) / 5) for i in range(5)])
        if self.signed or self.broken or self.stuck or self.steps < THRIVES:
            return False
        falls = levels[1:] <= limit("case.level") * levels[:-1]
        return bool(falls.all() and levels[-1] < limit("case.thrives") * levels[0])

    @cached_property
    def broken(self) -> bool:
        """Whether a loss or a parameter ended as no number."""
        at_the_end = len(self.lost) and self.lost[-1]
        return bool(
            at_the_end or np.isinf(self.losses).any() or self.record.final.get("broken_parameters")
        )

    @cached_property
    def nearly_right(self) -> bool:
        """Whether nearly all validation rows are answered rightly."""
        scores = [e.score for e in self.record.evaluations[-2:] if e.score is not None]
        least = limit("case.nearly_right")
        return self.task != "regression" and bool(scores) and least <= min(scores) <= 1

    @cached_property
    def few_wrong(self) -> bool:
        """Whether the validation loss is that of a handful of rows, the others being right."""
        scores = [e.score for e in self.record.evaluations[-2:] if e.score is not None]
        held = self.gathered("inputs", self.record.validation)
        if not scores or held is None or self.task == "regression":
            return False
        if not limit("case.few_wrong") <= min(scores) <= 1:
            return False
        return (1 - min(scores)) * len(distinct_rows(held)) < FEW

    @cached_property
    def score_gap(self) -> float:
        """Accuracy in training less that in validation; NaN where either is not known."""
        return self.accuracy(self.record.train, 8)[0] - self.accuracy(self.record.validation, 8)[0]

    @cached_property
    def smoothing(self) -> float:
        """How far labels are smoothed: each batch's loss lies equally far towards even odds."""
        rows, shares = self.record.train, []
        for step, o, t in zip(rows.steps, rows.outputs, rows.targets, strict=True):
            known = o is not None and t is not None and o.ndim == 2 and len(o) == len(t)
            if not known or o is None or step >= self.steps or self.head.loss != "cross_entropy":
                continue
            log_p = o.astype(float) - np.log(np.exp(o.astype(float)).sum(axis=1, keepdims=True))
            plain, even = self.data_loss(o, t), float(-log_p.mean())
            if abs(even - plain) > limit("rounding.equal"):
                shares.append((self.losses[step] - plain) / (even - plain))
        steady = len(shares) > 3 and float(np.std(shares)) < limit("case.smoothing_spread")
        any_at_all = steady and np.mean(shares) > limit("case.smoothing_least")
        return float(np.mean(shares)) if any_at_all else 0.0

    @cached_property
    def barren(self) -> bool:
        """Whether nothing is learnt of classes, and simple models find nothing in the rows either.

        Then the labels are not those of the rows, or the rows say nothing about them.
        """
        if self.labels is None or self.pairs is None or self.shifted:
            return False
        if not self.stuck or self.falls:
            return False
        x, first = np.unique(self.pairs[0].astype(float), axis=0, return_index=True)
        some = np.random.default_rng(0).permutation(len(x))[:MOST_ROWS]
        x, y = x[some], self.pairs[1][first][some]
        counts = np.unique(y, return_counts=True)[1]
        if len(x) < BARREN or len(counts) < 2 or not np.isfinite(x).all():
            return False
        often = float(counts.max() / len(y))
        by_chance = 2 * np.sqrt(often * (1 - often) / len(y))
        return bool(best_of_simple(projected(x), y, classes=True)[1] < often + by_chance)

    # ------------------------------------------------------------------ outputs

    def scored(
        self, rows: Any, last: int = 6, since: float = LATE
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Return outputs and targets of the last kept batches, where both are known and fit.

        ``since`` is a share of the steps: batches before it are left out, as the network was
        another then.
        """
        pairs = [
            (o, t)
            for step, o, t in zip(rows.steps, rows.outputs, rows.targets, strict=True)
            if o is not None and t is not None and o.ndim <= 2 and step >= since * self.steps - 1
        ][-last:]
        cut = [(o[: len(t)], t[: len(o)]) for o, t in pairs if len(o) and len(t)]
        if not cut or len({(o.shape[1:], t.shape[1:]) for o, t in cut}) > 1:
            cut = cut[-1:]
        if not cut:
            return None
        return np.concatenate([o for o, _ in cut]), np.concatenate([t for _, t in cut])

    def accuracy(self, rows: Any, last: int = 6, since: float = LATE) -> tuple[float, int]:
        """Return the share of rows whose answer is right, and how many were counted."""
        found = self.scored(rows, last, since)
        if found is None:
            return np.nan, 0
        outputs, targets = found
        if outputs.ndim == 2 and outputs.shape[1] > 1 and targets.ndim == 1:
            keep = targets != self.head.ignore_index
            right = outputs.argmax(axis=1) == targets
            return (float(right[keep].mean()), int(keep.sum())) if keep.any() else (np.nan, 0)
        if self.head.loss in BINARY_LOSSES and single(targets) and outputs.size == targets.size:
            even = limit("chance.even")
            middle = 0.0 if self.head.loss == "bce_logits" else even
            right = (outputs.reshape(-1) > middle) == (targets.reshape(-1) > even)
            return float(right.mean()), len(right)
        return np.nan, 0

    def probabilities(
        self, rows: Any, last: int = 6, since: float = LATE
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Return probabilities (rows, classes) and labels of the last kept batches."""
        found = self.scored(rows, last, since)
        if found is None:
            return None
        outputs, targets = found
        if self.head.loss in ("cross_entropy", "nll") and outputs.ndim == 2 and targets.ndim == 1:
            keep = targets != self.head.ignore_index
            outputs, targets = outputs[keep].astype(float), targets[keep]
            if not len(targets):
                return None
            outputs = outputs - outputs.max(axis=1, keepdims=True)
            p = np.exp(outputs)
            return p / p.sum(axis=1, keepdims=True), targets.astype(int)
        if self.head.loss in BINARY_LOSSES and single(targets) and outputs.size == targets.size:
            p = outputs.reshape(-1).astype(float)
            if self.head.loss != "bce":
                p = 1 / (1 + np.exp(-np.clip(p, -50, 50)))
            yes = targets.reshape(-1) > limit("chance.even")
            return np.stack([1 - p, p], axis=1), yes.astype(int)
        return None
