"""A record seen as a case: the quantities that several rules ask for, worked out once."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from castalia.diagnose.record import Head, Look, Record, Weight

__all__ = ["Case"]

CROSS_ENTROPIES = ("cross_entropy", "nll", "soft_cross_entropy")
BINARY_LOSSES = ("bce", "bce_logits", "soft_margin")
REGRESSIONS = ("mse", "l1", "smooth_l1", "huber")
SELDOM = 0.5  # of the rows that should have come again
LEAST_ROWS = 16  # in a loss that says something about the network rather than about its rows
TRIFLE = 0.1  # of the loss of guessing
FEW = 5  # rows
SAME_GAP = 0.08  # between accuracies that hardly differ
TINY = 200  # numbers in all weights of a network
LATE = 0.6  # share of the steps after which the network answers much as it does at the end
NORMS = ("BatchNorm", "LayerNorm", "GroupNorm", "InstanceNorm", "RMSNorm")


class Case:
    """What the rules look at.

    Parameters
    ----------
    record
        What was seen of the training.
    """

    def __init__(self, record: Record) -> None:
        self.record = record
        self.looks: list[Look] = record.looks
        self.weights: dict[str, Weight] = {w.name: w for w in record.weights}

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
        return recognised[-1] if recognised else known[-1] if known else Head()

    @cached_property
    def adversarial(self) -> bool:
        """Whether several optimizers play against each other."""
        return self.record.task == "gan" or len(self.record.optimizers) > 1

    @cached_property
    def task(self) -> str | None:
        """The task, told or recognised."""
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
            if inputs.ndim != 2 or inputs.shape[1] < 3:
                return False
            flat, length = targets.reshape(-1), inputs.shape[1]
            for width in (length, length - 1):  # equal lengths, or the last input dropped
                n = len(flat) // width
                if n and len(flat) % width == 0:
                    rows = min(n, len(inputs))
                    ahead = flat.reshape(n, width)[:rows, : length - 1]
                    after = inputs[:rows, 1 : ahead.shape[1] + 1]
                    values, counts = np.unique(after, return_counts=True)
                    telling = after != values[counts.argmax()]  # padding matches anything
                    if telling.any() and np.mean((ahead == after)[telling]) > 0.9:
                        return True
            return False
        return False

    # ------------------------------------------------------------------ targets

    def gathered(self, name: str, rows: Any = None) -> np.ndarray | None:
        """Return the kept rows of inputs or targets, one under the other, of the usual shape."""
        kept = [v for v in getattr(rows or self.record.train, name) if v is not None and v.size]
        if not kept:
            return None
        shape = max((v.shape[1:] for v in kept), key=[v.shape[1:] for v in kept].count)
        return np.concatenate([v for v in kept if v.shape[1:] == shape])

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
            return float(-(self.shares * np.log(self.shares)).sum())
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
            if step >= 0.75 * self.steps - 1 and np.isfinite(loss := self.data_loss(o, t))
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
        if not np.isfinite(self.guess) or self.guess <= 1e-9 or not len(self.finite):
            return np.nan
        if self.pooled > 1 and self.comparable:  # the losses are of more rows than were kept
            return 1.0 - float(self.finite[-max(5, len(self.finite) // 4) :].mean()) / self.guess
        if np.isfinite(self.fit_loss):
            return 1.0 - self.fit_loss / self.guess
        return 1.0 - self.final / self.guess if self.comparable else np.nan

    @cached_property
    def stuck(self) -> bool:
        """Whether the loss ends where guessing would leave it, or worse, or hardly moved."""
        if np.isfinite(self.learnt):
            return self.learnt < 0.1
        if not len(self.finite) or self.adversarial:
            return False
        return self.final > 0.95 * self.initial and self.initial > 0

    @cached_property
    def poor(self) -> bool:
        """Whether much of the loss of guessing is still there."""
        if np.isfinite(self.learnt):
            return self.learnt < 0.5
        return self.stuck

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
        return self.task != "regression" and bool(scores) and 0.93 <= min(scores) <= 1

    @cached_property
    def few_wrong(self) -> bool:
        """Whether the validation loss is that of a handful of rows, the others being right."""
        scores = [e.score for e in self.record.evaluations[-2:] if e.score is not None]
        held = self.gathered("inputs", self.record.validation)
        if not scores or held is None or self.task == "regression" or not 0.8 <= min(scores) <= 1:
            return False
        return (1 - min(scores)) * len(np.unique(held, axis=0)) < FEW

    @cached_property
    def score_gap(self) -> float:
        """Accuracy in training less that in validation; NaN where either is not known."""
        return self.accuracy(self.record.train, 8)[0] - self.accuracy(self.record.validation, 8)[0]

    @cached_property
    def smoothed(self) -> bool:
        """Whether labels are smoothed: then each batch's loss lies equally far towards even odds."""
        rows, shares = self.record.train, []
        for step, o, t in zip(rows.steps, rows.outputs, rows.targets, strict=True):
            known = o is not None and t is not None and o.ndim == 2 and len(o) == len(t)
            if not known or o is None or step >= self.steps or self.head.loss != "cross_entropy":
                continue
            log_p = o.astype(float) - np.log(np.exp(o.astype(float)).sum(axis=1, keepdims=True))
            plain, even = self.data_loss(o, t), float(-log_p.mean())
            if abs(even - plain) > 1e-6:
                shares.append((self.losses[step] - plain) / (even - plain))
        return len(shares) > 3 and float(np.std(shares)) < 0.02 and float(np.mean(shares)) > 0.01

    @cached_property
    def narrow(self) -> bool:
        """Whether the network is tiny, or all it knows of a row passes through one or two units."""
        sizes = [int(np.prod(w.shape)) for w in self.record.weights]
        hidden = [self.weights[name].shape[0] for name in self.depth[:-1]]
        return sum(sizes) < TINY or min(hidden, default=TINY) <= 2

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
            middle = 0.0 if self.head.loss == "bce_logits" else 0.5
            right = (outputs.reshape(-1) > middle) == (targets.reshape(-1) > 0.5)
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
            return np.stack([1 - p, p], axis=1), (targets.reshape(-1) > 0.5).astype(int)
        return None

    # ------------------------------------------------------------------ inputs

    @cached_property
    def inputs(self) -> np.ndarray | None:
        """Rows of numbers given to the network; None for tokens."""
        found = self.gathered("inputs")
        return found if found is not None and found.dtype.kind == "f" and found.ndim == 2 else None

    @cached_property
    def altered(self) -> bool:
        """Whether pictures or series that should come again seldom do: altered in training."""
        x = self.inputs
        if x is None or self.tabular or not self.epoch_rows:
            return False
        rows = max(self.epoch_rows, 1.0)
        expected = len(x) - rows * (1 - (1 - 1 / rows) ** len(x))
        return bool(expected > 20 and len(x) - len(np.unique(x, axis=0)) < SELDOM * expected)

    @cached_property
    def epoch_rows(self) -> float:
        """Rows trained on before the first validation, usually an epoch; 0 where unknown."""
        sizes = [look.size for look in self.looks if look.size]
        first = self.record.evaluations[0].step if self.record.evaluations else 0
        return first * float(np.median(sizes)) if sizes else 0.0

    @cached_property
    def unchanging(self) -> float:
        """Share of the input's numbers that are the same in every row; NaN where unknown."""
        x = self.gathered("inputs")
        if x is None or x.ndim != 2 or len(x) < 32 or x.shape[1] < 2:
            return np.nan
        return float((x == x[:1]).all(axis=0).mean())

    @cached_property
    def pairs(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Rows of inputs and the first target of each, of the kept batches that have both."""
        if self.inputs is None:
            return None
        kept = [
            (i, t[: len(i)].reshape(len(i), -1)[:, 0])
            for i, t in zip(self.record.train.inputs, self.record.train.targets, strict=True)
            if i is not None
            and t is not None
            and t.size
            and len(i) <= len(t)
            and i.dtype.kind == "f"
            and i.shape[1:] == self.inputs.shape[1:]
        ]
        if not kept:
            return None
        return np.concatenate([i for i, _ in kept]), np.concatenate([t for _, t in kept])

    @cached_property
    def tabular(self) -> bool:
        """Whether a row of inputs is a plain list of columns."""
        return self.inputs is not None and len(self.record.input_shape) == 1

    @cached_property
    def pixels(self) -> bool:
        """Whether inputs look like grey values: many columns, none negative, on one scale."""
        x = self.inputs
        if x is None or x.shape[1] < 30:
            return len(self.record.input_shape) >= 3
        top = np.nanmax(x, axis=0)
        return bool(np.nanmin(x) >= 0 and np.median(top[top > 0]) > 0.2 * top.max())

    # ------------------------------------------------------------------ layers

    @cached_property
    def depth(self) -> list[str]:
        """Weight matrices in the order of computation, normalisations and embeddings left out."""
        order: list[str] = []
        for look in self.looks[:3]:
            for layer, kind, _ in look.structure:
                name = f"{layer}.weight" if layer else "weight"
                matrix = name in self.weights and len(self.weights[name].shape) >= 2
                if matrix and kind not in ("Embedding", "EmbeddingBag") and name not in order:
                    order.append(name)
        return order

    def ratios(self, look: Look) -> np.ndarray:
        """Update-to-weight ratios of the weight matrices at one look."""
        names = [n for n in look.updates if n in self.weights and len(self.weights[n].shape) >= 2]
        return np.asarray([look.updates[n] for n in names], dtype=float)

    @cached_property
    def ratio(self) -> float:
        """Median update-to-weight ratio of the weight matrices, over layers and then over looks."""
        found = [float(np.median(r)) for look in self.looks if len(r := self.ratios(look))]
        return float(np.median(found)) if found else np.nan

    @cached_property
    def early_ratio(self) -> float:
        """The same over the first looks, where the rate shows before anything has settled."""
        found = [float(np.median(r)) for look in self.looks[:6] if len(r := self.ratios(look))]
        return float(np.median(found)) if found else np.nan

    @cached_property
    def turning(self) -> float:
        """Mean cosine between the gradients of one step and the next; near -1: back and forth."""
        found = []
        for look in self.looks:
            a, b = look.gradient, look.next_gradient
            if a is not None and b is not None and len(a) == len(b) and len(a) > 1:
                size = float(np.linalg.norm(a) * np.linalg.norm(b))
                if np.isfinite(size) and size > 0:
                    found.append(float(a @ b) / size)
        return float(np.mean(found)) if len(found) >= 2 else np.nan

    @cached_property
    def totals(self) -> np.ndarray:
        """Norm of the whole gradient at each look."""
        found = []
        for look in self.looks:
            norms = np.asarray([v for v in look.gradients.values() if v is not None], dtype=float)
            found.append(float(np.sqrt((norms**2).sum())) if len(norms) else np.nan)
        return np.asarray(found)

    @cached_property
    def spike(self) -> float:
        """Largest over median norm of the gradient; infinite where one overflowed."""
        if len(self.totals) and np.isinf(self.totals).any():
            return np.inf
        finite = self.totals[np.isfinite(self.totals)]
        if len(finite) < 4 or np.median(finite) <= 0:
            return np.nan
        return float(finite.max() / np.median(finite))

    @cached_property
    def recurrent(self) -> tuple[str, float, int] | None:
        """Of a recurrent layer: its name, what a signal keeps from step to step, and the steps.

        The factor is the spectral radius of the recurrent weights at the start times the mean
        slope of the activation.
        """
        record = self.record
        steps = record.input_shape[0] if len(record.input_shape) >= 2 else 0
        for weight in record.weights:
            if weight.radius is None:
                continue
            layer = weight.name.rpartition(".")[0]
            calls = [sum(n == layer for n, _, _ in look.structure) for look in self.looks[:1]]
            unrolled = max(calls, default=0)
            cell = weight.kind in ("RNN", "RNNCell")
            if not cell and unrolled < 8:
                continue
            return layer, weight.radius * self._slope, max(steps if cell else 0, unrolled)
        return None

    @cached_property
    def _slope(self) -> float:
        """Mean slope of the bounded activations at the start; 1 where there are none."""
        found = []
        for unit in (u for look in self.looks[:3] for u in look.units if not u.gate):
            square = unit.std**2 + unit.mean**2
            if unit.kind == "tanh":
                found.append(1 - square)  # tanh' = 1 - tanh²
            elif unit.kind == "sigmoid":
                found.append(unit.mean - square)  # σ' = σ - σ²
        return float(np.mean(found)) if found else 1.0

    @cached_property
    def weights_radius(self) -> float:
        """Spectral radius of the recurrent weights at the start; 0 where there are none."""
        if self.recurrent is None:
            return 0.0
        layer = self.recurrent[0]
        found = [w.radius for w in self.record.weights if w.name.startswith(layer) and w.radius]
        return max(found, default=0.0)

    @cached_property
    def normalised(self) -> bool:
        """Whether the network has normalising layers."""
        return any(any(n in layer.kind for n in NORMS) for layer in self.record.layers)

    @property
    def optimizer(self) -> Any:
        """The first optimizer, or None."""
        return self.record.optimizers[0] if self.record.optimizers else None

    @property
    def lr(self) -> float:
        """Learning rate of the first optimizer at its first step."""
        return self.optimizer.first if self.optimizer else np.nan


def _single(targets: np.ndarray) -> bool:
    """Whether each row has one target."""
    return targets.ndim == 1 or (targets.ndim == 2 and targets.shape[1] == 1)
