"""Which rows are trained on and which are tested."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold, TimeSeriesSplit

from castalia.data import Dataset
from castalia.data.row_splits import holdout
from castalia.errors import InvalidData
from castalia.method.fit_plan import FitPlan
from castalia.method.task import Task
from castalia.utils.text import listing, plural

__all__ = ["Part", "hold_validation", "make_parts"]

LEAST_ROWS = 10


@dataclass(frozen=True)
class Part:
    """One way to cut the rows: numbers of the rows trained on and of the rows tested."""

    name: str
    train: np.ndarray
    test: np.ndarray

    def stage(self, name: str) -> str:
        """Return the name of a stage that is done on this part."""
        return f"{self.name}-{name}" if self.name else name


def make_parts(
    data: Any, task: Task, plan: FitPlan, groups: np.ndarray | None = None
) -> tuple[list[Part], list[str]]:
    """Cut the rows once, or into folds; return the parts and remarks.

    Classes keep their proportions, groups stay together, and by time the latest rows are tested.
    """
    if len(data) < LEAST_ROWS:
        raise InvalidData(
            f"fit: {data.source} must have {LEAST_ROWS} {task.unit}s at least to train and test; "
            f"got {len(data)}."
        )
    groups = groups if plan.group is None else _column(data, plan.group)
    order = _column(data, plan.time)
    if plan.cv:
        return _folds(task, plan, groups, order)
    return _one(task, plan, groups, order)


def hold_validation(
    data: Dataset, rows: np.ndarray, plan: FitPlan, share: float
) -> tuple[np.ndarray, np.ndarray] | None:
    """Cut validation rows off the training rows by group or time; None where chance will do."""
    name = plan.group or plan.time
    if name is None or not 0 < share < 1:
        return None
    values = _column(data.take(rows), name)
    if plan.group and len(np.unique(values)) < 2:
        return None
    key: Any = {"groups" if plan.group else "order": values}
    kept, held = holdout(len(rows), share, seed=plan.seed, **key)
    return rows[kept], rows[held]


def _column(data: Dataset, name: str | None) -> Any:
    if name is None:
        return None
    values = data.column(name)
    missing = _missing(values)
    if missing.any():
        raise InvalidData(
            f"fit: column `{name}` must have a value in every row to split by; "
            f"{missing.sum():,} of {len(values):,} are missing, first in row "
            f"{int(missing.argmax())}."
        )
    return np.array([str(v) for v in values]) if values.dtype == object else values


def _missing(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind == "M":
        return np.isnat(values)
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype == object:
        return np.array([v is None for v in values])
    return np.zeros(len(values), dtype=bool)


def _one(task: Task, plan: FitPlan, groups: Any, order: Any) -> tuple[list[Part], list[str]]:
    n, notes = len(task.y), list[str]()
    size = int(n * plan.test)
    if size < 1:
        raise InvalidData(
            f"fit: the test part must hold a {task.unit} at least; {plan.test:g} of {n} is none. "
            "Raise --test."
        )
    if task.kind == "classification" and groups is None and order is None:
        kept, held, notes = _stratified(task, plan, size)
    else:
        kept, held = holdout(n, plan.test, seed=plan.seed, groups=groups, order=order)
    _check_classes(task, kept)
    return [Part("", kept, held)], notes


def _stratified(task: Task, plan: FitPlan, size: int) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Keep classes in proportion; rows of a class that has only one are trained on."""
    n, counts = len(task.y), np.bincount(task.codes)
    if len(counts) > min(size, n - size):
        raise InvalidData(
            f"fit: {plural(n, task.unit)} must suffice to test every class; the target has "
            f"{len(counts):,} classes and "
            f"the test part {plural(size, task.unit)}. Merge rare classes, raise --test, or use "
            "--task regression."
        )
    alone = np.flatnonzero(counts[task.codes] == 1)
    rest = np.setdiff1d(np.arange(n), alone)
    kept, held = holdout(len(rest), plan.test, seed=plan.seed, labels=task.codes[rest])
    notes = []
    if len(alone):
        rare = listing(task.y[alone].tolist(), "and", 5)
        notes = [f"Classes of a single {task.unit} can be trained on but not tested: {rare}."]
    return np.sort(np.concatenate([rest[kept], alone])), rest[held], notes


def _folds(task: Task, plan: FitPlan, groups: Any, order: Any) -> tuple[list[Part], list[str]]:
    n, k, notes = len(task.y), int(plan.cv or 2), list[str]()
    place = np.arange(n)
    if groups is not None:
        if len(np.unique(groups)) < k:
            raise InvalidData(
                f"fit: `--cv {k}` needs {k} groups at least; `{plan.group or 'the data'}` has "
                f"{len(np.unique(groups))}."
            )
        cuts = GroupKFold(k).split(place, groups=groups)
    elif order is not None:
        place = np.argsort(order, kind="stable")
        cuts = TimeSeriesSplit(k).split(place)
    elif task.kind == "classification":
        least = int(np.bincount(task.codes).min())
        if least < k:
            name = task.classes[np.bincount(task.codes).argmin()].item()
            raise InvalidData(
                f"fit: `--cv {k}` needs {k} {task.unit}s of every class; {name!r} has "
                f"{plural(least, task.unit)}. "
                "Use fewer folds or merge rare classes."
            )
        cuts = StratifiedKFold(k, shuffle=True, random_state=plan.seed).split(place, task.codes)
    else:
        cuts = KFold(k, shuffle=True, random_state=plan.seed).split(place)
    parts = [
        Part(f"fold-{i}", np.sort(place[kept]), np.sort(place[held]))
        for i, (kept, held) in enumerate(cuts, start=1)
    ]
    for part in parts:
        _check_classes(task, part.train)
    return parts, notes


def _check_classes(task: Task, rows: np.ndarray) -> None:
    if task.kind == "classification" and len(np.unique(task.codes[rows])) < 2:
        raise InvalidData(
            f"fit: the training part must hold two classes or more; it holds only "
            f"{task.y[rows[0]].item()!r}. Split in another way."
        )
