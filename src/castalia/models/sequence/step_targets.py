"""Targets at every step of a sequence: classes, or numbers.

Shapes: N sequences, T steps, K numbers a step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from castalia.base import Target, TargetCodec
from castalia.base.input_checks import same_rows
from castalia.base.targets import NumberCodec, numeric_target
from castalia.data.batches import TensorRows
from castalia.errors import InvalidData

__all__ = ["StepClasses", "StepNumbers", "is_stepwise", "real_parts"]


def is_stepwise(y: Any) -> bool:
    """Whether targets are arrays, one for each sequence."""
    return isinstance(y, list | tuple | np.ndarray) and bool(len(y)) and np.ndim(y[0]) > 0


def checked_steps(
    est: Any, X: Any, y: Any, whole: str = "sequence", part: str = "step"
) -> list[np.ndarray]:
    """Return an array for each sequence with as many steps, or say where one has not."""
    name = type(est).__name__
    same_rows(name, X, y)
    found = [np.asarray(part) for part in y]
    for place, (steps, targets) in enumerate(zip(X, found, strict=True)):
        if targets.ndim < 1 or len(targets) != len(steps):
            count = len(targets) if targets.ndim else 0
            raise InvalidData(
                f"{name}: every {part} must have a target; {whole} {place} has {len(steps)} "
                f"{part}s and {count} targets."
            )
    return found


def padded(parts: list[np.ndarray], fill: Any) -> Tensor | TensorRows:
    """Return rows side by side, (N, …, T), with their lengths where these differ."""
    lengths = torch.tensor([part.shape[-1] for part in parts])
    shape = (len(parts), *parts[0].shape[:-1], int(lengths.max()))
    found = np.full(shape, fill)
    for row, part in zip(found, parts, strict=True):
        row[..., : part.shape[-1]] = part
    whole = torch.from_numpy(found)
    return whole if bool((lengths == lengths[0]).all()) else TensorRows(whole, lengths)


def real_parts(est: Any, X: Any) -> list[np.ndarray]:
    """Return the network's outputs at the real steps of each sequence, arrays (T, K)."""
    found, start = [], 0
    for outputs in est._through(X):
        for row in outputs.numpy():
            found.append(row[: len(X[start])])
            start += 1
    return found


class StepClasses(TargetCodec):
    """A class for every step: learns ``classes_``."""

    def check(self, est: Any, adapter: Any, X: Any, y: Any) -> np.ndarray:
        """Return an array of classes for each sequence."""
        parts = checked_steps(est, X, y)
        found = np.empty(len(parts), dtype=object)
        found[:] = parts
        return found

    def fit(self, est: Any, adapter: Any, X: Any, y: Any, weight: np.ndarray | None) -> Target:
        """Learn the classes, and return their numbers."""
        est.classes_ = np.unique(np.concatenate(list(y)))
        if len(est.classes_) < 2:
            raise InvalidData(
                f"{type(est).__name__}: the target must hold two classes or more; got one class, "
                f"{est.classes_.tolist()[0]!r}."
            )
        return super().fit(est, adapter, X, y, weight)

    def encode(self, est: Any, y: Any) -> Target:
        """Return the numbers of classes, (N, T), -1 after the end."""
        codes = []
        for part in y:
            strange = ~np.isin(part, est.classes_)
            if strange.any():
                raise InvalidData(
                    f"{type(est).__name__}: further targets must hold only classes seen in "
                    f"training; got {part[strange].tolist()[0]!r}."
                )
            codes.append(np.searchsorted(est.classes_, part))
        return Target(padded(codes, -1), len(est.classes_))


class StepNumbers(NumberCodec):
    """Numbers for each sequence, or for each of its steps: learns ``each_step_``."""

    def check(self, est: Any, adapter: Any, X: Any, y: Any) -> Any:
        """Return the targets of sequences, or an array for each of them."""
        stepwise = is_stepwise(y) and not (isinstance(y, np.ndarray) and y.dtype != object)
        if not stepwise:
            return super().check(est, adapter, X, y)
        parts = [_columns(part) for part in checked_steps(est, X, y)]
        bad = next((i for i, part in enumerate(parts) if not np.isfinite(part).all()), None)
        if bad is not None:
            raise InvalidData(
                f"{type(est).__name__}: targets must hold no NaN or infinity; those of sequence "
                f"{bad} do."
            )
        found = np.empty(len(parts), dtype=object)
        found[:] = parts
        return found

    def fit(
        self, est: Any, adapter: Any, X: Any, y: np.ndarray, weight: np.ndarray | None
    ) -> Target:
        """Learn mean and deviation, and scale; counts keep their units."""
        est.each_step_ = y.dtype == object
        if est.each_step_:
            every = np.concatenate(list(y))
            est.one_target_ = every.shape[1] == 1
            est.target_mean_, spread = every.mean(axis=0), every.std(axis=0)
            est.target_scale_ = np.where(spread > 0, spread, 1.0)
        else:
            super().fit(est, adapter, X, y, weight)
            every = numeric_target(est, y)
        if est.output == "poisson":
            _refuse_negative(est, every)
            est.target_mean_ = np.zeros_like(est.target_mean_)
            est.target_scale_ = np.ones_like(est.target_scale_)
        return TargetCodec.fit(self, est, adapter, X, y, weight)

    def encode(self, est: Any, y: np.ndarray) -> Target:
        """Scale; of steps (N, K, T)."""
        if not est.each_step_:
            return super().encode(est, y)
        scaled = [((part - est.target_mean_) / est.target_scale_).T for part in y]
        return Target(padded(scaled, 0.0), len(est.target_mean_))


def _refuse_negative(est: Any, values: np.ndarray) -> None:
    if (values < 0).any():
        raise InvalidData(
            f"{type(est).__name__}: y must hold counts or rates of at least 0 for the output "
            f"'poisson'; got {values.min():g}. Use 'gaussian' instead."
        )


def _columns(part: np.ndarray) -> np.ndarray:
    """Return numbers of steps as (T, K)."""
    return (part[:, None] if part.ndim == 1 else part).astype(np.float64)
