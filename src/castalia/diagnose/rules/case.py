"""A record seen as a case: the quantities that several rules ask for, worked out once."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from castalia.diagnose.record import Head, Record
from castalia.diagnose.rules.case_network import Network
from castalia.diagnose.rules.case_rows import Kept
from castalia.diagnose.rules.distinct_rows import distinct_rows
from castalia.diagnose.rules.logged_loss import by_values
from castalia.diagnose.thresholds import limit

__all__ = ["Case"]

CROSS_ENTROPIES = ("cross_entropy", "nll", "soft_cross_entropy")
BINARY_LOSSES = ("bce", "bce_logits", "soft_margin")
REGRESSIONS = ("mse", "l1", "smooth_l1", "huber")
LEAST_ROWS = 16  # in a loss that says something about the network rather than about its rows
TRIFLE = limit("case.trifle")
FEW = 5  # rows
LEAST_TOKENS = 8  # of a sequence that is known by its order
THRIVES = 20  # steps
AGENT = 2  # looked-at steps with calls aside
MEDIAN = 1.25  # standard error of a median over that of a mean
SAME_GAP = limit("case.same_gap")
LATE = limit("case.late")


class Case(Network, Kept):
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

    # ------------------------------------------------------------------ the objective

    @cached_property
    def head(self) -> Head:
        """How the outputs become the loss, as last recognised."""
        known = [look.head for look in self.looks if look.head is not None]
        recognised = [head for head in known if head.loss != "unknown"]
        if recognised:
            return recognised[-1]
        return by_values(self.record, known[-1] if known else Head())

    @cached_property
    def adversarial(self) -> bool:
        """Whether several optimizers play against each other."""
        given = self.record.task == "gan" or len(self.record.optimizers) > 1
        return given or self.judges or bool(self.record.final.get("judged")) or self._plays

    @cached_property
    def judges(self) -> bool:
        """Whether it is shown what another network makes beside what none has made."""
        return {made for made, _ in self.record.shown} == {True, False}

    @cached_property
    def _plays(self) -> bool:
        """Whether labels are those of a game: one for all rows of a batch, two batches a step.

        A generator is given the same label in every batch.
        """
        known = [t for t in self.record.train.targets if t is not None and t.size]
        if self.head.loss not in (*BINARY_LOSSES, "mse") or len(known) < FEW:
            return False
        values = {value for t in known for value in np.unique(t).tolist()}
        several = [look.passes > 1 for look in self.looks]
        each = all(np.ptp(t) == 0 for t in known) and float(np.mean(several)) > LATE
        return values <= {0.0, 1.0} and (len(values) == 1 or each)

    @cached_property
    def task(self) -> str | None:
        """The task, given or recognised."""
        if self.record.task:
            return self.record.task
        if self.adversarial:
            return None
        if self.record.latent is not None and self._encodes:
            return "vae"
        loss = self.head.loss
        if loss in CROSS_ENTROPIES:
            return "lm" if self.shifted else "multiclass"
        if loss in BINARY_LOSSES:
            wide = len(self.head.outputs) > 1 and self.head.outputs[-1] > 1
            return "multilabel" if wide else "binary"
        return "regression" if loss in REGRESSIONS else None

    @cached_property
    def _encodes(self) -> bool:
        """Whether a second number of each latent dimension looks like a log-variance."""
        return self.record.latent is not None and self.head.loss not in CROSS_ENTROPIES

    @cached_property
    def shifted(self) -> bool:
        """Whether targets are the inputs one position later, as in a language model."""
        for inputs, targets in zip(
            self.record.train.inputs, self.record.train.targets, strict=True
        ):
            if inputs is None or targets is None or inputs.dtype.kind not in "iu":
                continue
            if inputs.ndim != 2:
                return False
            flat, length = targets.reshape(-1), inputs.shape[1]
            if _is_next(flat, inputs) or length < 3:
                return _is_next(flat, inputs)
            for width in (length, length - 1):  # equal lengths, or the last input dropped
                n = len(flat) // width
                if n and len(flat) % width == 0:
                    rows = min(n, len(inputs))
                    ahead = flat.reshape(n, width)[:rows, : length - 1]
                    after = inputs[:rows, 1 : ahead.shape[1] + 1]
                    values, counts = np.unique(after, return_counts=True)
                    telling = after != values[counts.argmax()]  # padding matches anything
                    if telling.any() and np.mean((ahead == after)[telling]) > limit("case.shifted"):
                        return True
            return False
        return False

    # ------------------------------------------------------------------ targets

    @cached_property
    def targets(self) -> np.ndarray | None:
        """Targets of the training rows that were kept."""
        return self.gathered("targets")

    @cached_property
    def labels(self) -> np.ndarray | None:
        """Classes of the training rows that were kept, padding left out; None for other tasks."""
        targets = self.targets
        if targets is None or self.adversarial:
            return None
        if self.head.loss in CROSS_ENTROPIES and targets.dtype.kind in "iu":
            flat = targets.reshape(-1)
            return flat[flat != self.head.ignore_index]
        if self.head.loss == "soft_cross_entropy" and targets.ndim == 2:
            return targets.argmax(axis=1)
        if self.head.loss in BINARY_LOSSES and _single(targets):
            flat = targets.reshape(-1)
            return flat.astype(int) if np.isin(flat, (0, 1)).all() else None
        return None

    @cached_property
    def shares(self) -> np.ndarray:
        """Share of each class seen, the most common first."""
        if self.labels is None or not len(self.labels):
            return np.zeros(0)
        counts = np.sort(np.unique(self.labels, return_counts=True)[1])[::-1]
        return counts / counts.sum()

    @cached_property
    def guess(self) -> float:
        """Loss of the best constant answer; NaN where unknown."""
        if self.labels is not None and len(self.shares):
            # Miller and Madow, 1955: few draws of many classes look less varied than they are.
            entropy = float(-(self.shares * np.log(self.shares)).sum())
            bias = (len(self.shares) - 1) / (2 * len(self.labels))
            return entropy + bias if bias > limit("case.bias") * entropy else entropy
        targets = self.targets
        if targets is None or targets.dtype.kind != "f" or self._weighed:
            return np.nan
        flat = targets.reshape(len(targets), -1)
        if self.head.loss == "mse":
            return float(flat.var(axis=0).mean())
        if self.head.loss == "l1":
            return float(np.abs(flat - np.median(flat, axis=0)).mean())
        if self.head.loss in BINARY_LOSSES and ((flat >= 0) & (flat <= 1)).all():
            p = np.clip(flat.mean(axis=0), 1e-6, 1 - 1e-6)
            return float(-(p * np.log(p) + (1 - p) * np.log(1 - p)).mean())
        return np.nan

    @cached_property
    def floor(self) -> float:
        """Least loss of any answer: of targets between 0 and 1, such as grey values, their own."""
        targets = self.targets
        if self.head.loss not in BINARY_LOSSES or targets is None or self.labels is not None:
            return 0.0
        if not ((targets >= 0) & (targets <= 1)).all():
            return 0.0
        p = np.clip(targets.astype(float), 1e-6, 1 - 1e-6)
        return float(-(p * np.log(p) + (1 - p) * np.log(1 - p)).mean())

    @property
    def _weighed(self) -> bool:
        """Whether some of the targets count more than others, or not at all."""
        return self.head.weighted and self.head.loss in REGRESSIONS

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

    def data_loss(self, outputs: np.ndarray | None, targets: np.ndarray | None) -> float:
        """Return the loss of one kept batch by its plain definition; NaN where unknown."""
        if outputs is None or targets is None or not len(outputs) or not len(targets):
            return np.nan
        if self._weighed:
            return np.nan
        n, loss = min(len(outputs), len(targets)), self.head.loss
        o, t = outputs[:n].astype(float), targets[:n]
        if (
            loss in ("cross_entropy", "nll")
            and o.ndim == 2
            and t.ndim == 1
            and t.dtype.kind in "iu"
        ):
            keep = (t != self.head.ignore_index) & (t >= 0) & (t < o.shape[1])
            if not keep.any():
                return np.nan
            o = o - o.max(axis=1, keepdims=True)
            log_p = o - np.log(np.exp(o).sum(axis=1, keepdims=True))
            return float(-log_p[np.flatnonzero(keep), t[keep]].mean())
        if o.size != t.size:
            return np.nan
        o, t = o.reshape(n, -1), t.reshape(n, -1).astype(float)
        if loss == "mse":
            return float(((o - t) ** 2).mean())
        if loss == "l1":
            return float(np.abs(o - t).mean())
        if loss in BINARY_LOSSES:
            p = o if loss == "bce" else 1 / (1 + np.exp(-np.clip(o, -50, 50)))
            p = np.clip(p, 1e-7, 1 - 1e-7)
            return float(-(t * np.log(p) + (1 - t) * np.log(1 - p)).mean())
        return np.nan

    @cached_property
    def comparable(self) -> bool:
        """Whether the training loss is a plain mean that can be held against guessing."""
        head = self.head
        plain = head.reduction == "mean" and not head.others and not head.weighted
        return plain and self.task != "vae"

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
        if self.pooled > 1 and self.comparable:  # the losses are of more rows than were kept
            return float(self.finite[-max(5, len(self.finite) // 4) :].mean())
        if np.isfinite(self.fit_loss):
            return self.fit_loss
        return self.final if self.comparable else np.nan

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
    def acts(self) -> bool:
        """Whether the network is an agent: its losses follow what it does, and need not fall."""
        return self.record.asides >= AGENT

    @cached_property
    def signed(self) -> bool:
        """Whether an unknown loss falls below zero: how far it is above says nothing then."""
        if self.head.loss != "unknown" or not len(self.finite):
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
    def in_one_piece(self) -> bool:
        """Whether the loss takes only part of the rows given: the nodes of one graph, say.

        Then rows of validation go through the network in training too, without their answers.
        """
        rows = self.head.outputs[0] if self.head.outputs else 0
        sizes = [look.size for look in self.looks if look.size]
        return bool(sizes) and 1 < rows < limit("rows.in_one_piece") * float(np.median(sizes))

    @cached_property
    def computed(self) -> bool:
        """Whether the numbers to learn are no data, as returns that an agent reckons with.

        They differ where a row comes again; or none of the first half of the training does in the
        second, as each rollout of an agent is left behind, and nobody validates.
        """
        if self.labels is not None or self.pairs is None:
            return False
        x, y = self.pairs
        _, which, counts = np.unique(x, axis=0, return_inverse=True, return_counts=True)
        which = which.reshape(-1)
        low, high = np.full(len(counts), np.inf), np.full(len(counts), -np.inf)
        np.minimum.at(low, which, y)
        np.maximum.at(high, which, y)
        half = len(which) // 2
        if not np.isin(which[half:], which[:half]).any():
            return not self.record.evaluations
        return float((high > low)[counts > 1].mean()) > limit("targets.computed")

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
        if self.head.loss in BINARY_LOSSES and _single(targets) and outputs.size == targets.size:
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
        if self.head.loss in BINARY_LOSSES and _single(targets) and outputs.size == targets.size:
            p = outputs.reshape(-1).astype(float)
            if self.head.loss != "bce":
                p = 1 / (1 + np.exp(-np.clip(p, -50, 50)))
            yes = targets.reshape(-1) > limit("chance.even")
            return np.stack([1 - p, p], axis=1), yes.astype(int)
        return None


def _is_next(flat: np.ndarray, inputs: np.ndarray) -> bool:
    """Whether targets are the next tokens of sequences that stand in columns, or of a single one.

    >>> _is_next(np.arange(1, 9), np.arange(8).reshape(8, 1))
    True
    """
    width = inputs.shape[1]
    if not width or len(flat) % width or len(inputs) < LEAST_TOKENS:
        return False
    ahead = flat.reshape(-1, width)[: len(inputs) - 1]
    after = inputs[1 : len(ahead) + 1]
    varied = len(np.unique(after)) > 2
    return varied and float(np.mean(ahead == after)) > limit("case.shifted")


def _single(targets: np.ndarray) -> bool:
    """Whether each row has one target."""
    return targets.ndim == 1 or (targets.ndim == 2 and targets.shape[1] == 1)
