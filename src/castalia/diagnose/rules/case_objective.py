"""What a training makes small: the loss, its task and targets, and what guessing costs."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from castalia.diagnose.record import Head
from castalia.diagnose.rules.case_network import Network
from castalia.diagnose.rules.case_rows import Kept
from castalia.diagnose.rules.logged_loss import by_values
from castalia.diagnose.thresholds import limit

__all__ = ["BINARY_LOSSES", "CROSS_ENTROPIES", "LATE", "REGRESSIONS", "Objective", "single"]

CROSS_ENTROPIES = ("cross_entropy", "nll", "soft_cross_entropy")
BINARY_LOSSES = ("bce", "bce_logits", "soft_margin")
REGRESSIONS = ("mse", "l1", "smooth_l1", "huber")
FEW = 5  # rows
LEAST_TOKENS = 8  # of a sequence that is known by its order
AGENT = 2  # looked-at steps with calls aside
LATE = limit("case.late")


class Objective(Network, Kept):
    """The part of a case on the loss function and its targets."""

    @cached_property
    def head(self) -> Head:
        """How the outputs become the loss, as last recognised."""
        known = [look.head for look in self.looks if look.head is not None]
        recognised = [head for head in known if head.loss != "unknown"]
        if recognised:
            return recognised[-1]
        return by_values(self.record, known[-1] if known else Head())

    @cached_property
    def last_layers(self) -> set[str | None]:
        """Layers that give answers, and no signal to others."""
        return {self.head.layer, *self.head.last}

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
    def acts(self) -> bool:
        """Whether the network is an agent: its losses follow what it does, and need not fall.

        It acts beside its steps, or learns numbers from rows that it leaves behind.
        """
        if self.record.asides >= AGENT:
            return True
        return self.labels is None and not self.adversarial and self.left_behind

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
            return "lm" if self.shifted or self._token_by_token else "multiclass"
        if loss in BINARY_LOSSES:
            wide = len(self.head.outputs) > 1 and self.head.outputs[-1] > 1
            return "multilabel" if wide else "binary"
        return "regression" if loss in REGRESSIONS else None

    @cached_property
    def _token_by_token(self) -> bool:
        """Whether a step adds up many losses of one kind, as those of the letters of a text."""
        others = self.head.others
        return len(others) >= LEAST_TOKENS and len(set(others)) == 1

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

    @cached_property
    def in_one_piece(self) -> bool:
        """Whether the loss takes only part of the rows given: the nodes of one graph, say.

        Then rows of validation go through the network in training too, without their answers.
        """
        heads = [(look.head, look.size) for look in self.looks if look.size]
        rows = [(head.outputs[0], size) for head, size in heads if head and head.outputs]
        shares = [n / size for n, size in rows if n > 1]  # a last batch may be shorter
        return bool(shares) and float(np.median(shares)) < limit("rows.in_one_piece")

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
        if self.head.loss in BINARY_LOSSES and single(targets):
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
    def computed(self) -> bool:
        """Whether the numbers to learn are no data, as returns that an agent reckons with.

        None of the first half of the training comes in the second, as each rollout of an agent is
        left behind, and nobody validates; or they are reckoned.
        """
        if self.labels is not None or self.pairs is None:
            return False
        which = np.unique(self.pairs[0], axis=0, return_inverse=True)[1].reshape(-1)
        half = len(which) // 2
        if not np.isin(which[half:], which[:half]).any():
            return not self.record.evaluations
        return self.reckons

    @cached_property
    def reckons(self) -> bool:
        """Whether the numbers to learn differ where a row comes again, or the network acts."""
        if self.labels is not None or self.pairs is None:
            return self.acts
        x, y = self.pairs
        _, which, counts = np.unique(x, axis=0, return_inverse=True, return_counts=True)
        which = which.reshape(-1)
        low, high = np.full(len(counts), np.inf), np.full(len(counts), -np.inf)
        np.minimum.at(low, which, y)
        np.maximum.at(high, which, y)
        differ = (high > low)[counts > 1]  # of rows that come again
        return self.acts or bool(differ.sum() > limit("targets.computed") * max(len(differ), 1))

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


def single(targets: np.ndarray) -> bool:
    """Whether each row has one target."""
    return targets.ndim == 1 or (targets.ndim == 2 and targets.shape[1] == 1)
