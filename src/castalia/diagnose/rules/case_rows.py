"""What a record keeps of the rows that were given to the network."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from castalia.diagnose.record import Look, Record
from castalia.diagnose.rules.distinct_rows import distinct_rows, rows_as_bytes
from castalia.diagnose.thresholds import limit

__all__ = ["Kept"]

ROLLED_OUT = 16  # rows that come again


class Kept:
    """The part of a case on inputs."""

    record: Record
    looks: list[Look]

    def gathered(self, name: str, rows: Any = None) -> np.ndarray | None:
        """Return the kept rows of inputs or targets, one under the other, of the usual shape."""
        kept = [v for v in getattr(rows or self.record.train, name) if v is not None and v.size]
        if not kept:
            return None
        shape = max((v.shape[1:] for v in kept), key=[v.shape[1:] for v in kept].count)
        return np.concatenate([v for v in kept if v.shape[1:] == shape])

    @cached_property
    def inputs(self) -> np.ndarray | None:
        """Rows of numbers given to the network; None for tokens."""
        found = self.gathered("inputs")
        return found if found is not None and found.dtype.kind == "f" and found.ndim == 2 else None

    @cached_property
    def distinct_inputs(self) -> np.ndarray | None:
        """``inputs``, each row once."""
        return None if self.inputs is None else distinct_rows(self.inputs)

    @cached_property
    def met(self) -> dict[bytes, list[int]]:
        """Steps at which each different row was kept: numbers or tokens, however many it has."""
        found: dict[bytes, list[int]] = {}
        for step, x in zip(self.record.train.steps, self.record.train.inputs, strict=True):
            if x is not None and x.size:
                for row in rows_as_bytes(x).tolist():
                    found.setdefault(row, []).append(step)
        return found

    @cached_property
    def rows_kept(self) -> int:
        """How many rows were kept, those that come again too."""
        return sum(map(len, self.met.values()))

    @cached_property
    def altered(self) -> bool:
        """Whether images or series that should come again seldom do: altered in training."""
        x, distinct = self.inputs, self.distinct_inputs
        if x is None or distinct is None or self.tabular or not self.epoch_rows:
            return False
        rows = max(self.epoch_rows, 1.0)
        expected = len(x) - rows * (1 - (1 - 1 / rows) ** len(x))
        again = len(x) - len(distinct)
        return bool(expected > 20 and again < limit("rows.seldom") * expected)

    @cached_property
    def left_behind(self) -> bool:
        """Whether rows come again soon and never later, as an agent's rollouts do."""
        if self.inputs is None:
            return False
        spans = [steps[-1] - steps[0] for steps in self.met.values()]
        later = [span for span in spans if span > 0]
        return len(later) >= ROLLED_OUT and max(later) < limit("rows.soon") * self.record.steps

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
    def copies(self) -> bool:
        """Whether a row's target is the row itself, as an autoencoder has it."""
        rows = self.record.train
        kept = [
            (x, y.reshape(len(y), -1)[: len(x)])
            for x, y in zip(rows.inputs, rows.targets, strict=True)
            if x is not None and y is not None and x.size and len(y) and x.ndim == 2
        ]
        like = [(x[: len(y)], y) for x, y in kept if x.shape[1] == y.shape[1] > 1]
        return bool(like) and all(np.array_equal(x, y) for x, y in like)

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
        one_scale = np.median(top[top > 0]) > limit("inputs.pixels") * top.max()
        return bool(np.nanmin(x) >= 0 and one_scale)
