"""Which rows are trained on and which are tested: several parts, each with its own seed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold, TimeSeriesSplit

from castalia.data import Dataset
from castalia.data.row_splits import holdout
from castalia.errors import InvalidData
from castalia.method.fit_plan import NO_TIME, FitPlan
from castalia.method.task import Task
from castalia.utils.text import listing, plural

__all__ = ["Part", "RowKeys", "hold_validation", "make_parts", "row_keys", "same_rows"]

LEAST_ROWS = 10
REPEATS = 3  # parts, unless a training takes long


@dataclass(frozen=True)
class Part:
    """One way to cut the rows: numbers of those trained on and tested, and the training's seed."""

    name: str
    train: np.ndarray
    test: np.ndarray
    seed: int = 0

    def stage(self, name: str) -> str:
        """Return the name of a stage that is done on this part."""
        return f"{self.name}-{name}" if self.name else name


class RowKeys(NamedTuple):
    """What rows are split by, one value a row: groups that stay together, or an order in time."""

    groups: np.ndarray | None = None
    order: np.ndarray | None = None


def row_keys(data: Dataset, plan: FitPlan) -> RowKeys:
    """Read the columns to split by that a plan names."""
    time = None if plan.time == NO_TIME else plan.time
    return RowKeys(_column(data, plan.group), _column(data, time))


def make_parts(
    data: Any, task: Task, plan: FitPlan, keys: RowKeys | None = None, repeats: int = REPEATS
) -> tuple[list[Part], list[str]]:
    """Cut the rows several times, or into folds; return the parts and remarks.

    No row is tested twice while there are others. Classes keep their proportions, groups stay
    together, and by time rows are tested that are later than all those trained on.
    """
    if len(data) < LEAST_ROWS:
        raise InvalidData(
            f"fit: {data.source} must have {LEAST_ROWS} {task.unit}s at least to train and test; "
            f"got {len(data)}."
        )
    keys = keys or RowKeys()
    if plan.cv:
        return _folds(task, plan, keys), []
    return _repeats(task, plan, keys, plan.seeds or repeats)


def same_rows(part: Part, repeats: int) -> list[Part]:
    """Return a part several times, each with another seed."""
    if repeats == 1:
        return [part]
    return [replace(part, name=f"split-{i + 1}", seed=i) for i in range(repeats)]


def hold_validation(
    rows: np.ndarray, share: float, keys: RowKeys, seed: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """Cut validation rows off the training rows by group or time; None where chance will do."""
    found = {name: v[rows] for name, v in keys._asdict().items() if v is not None}
    if not found or not 0 < share < 1:
        return None
    if "groups" in found and len(np.unique(found["groups"])) < 2:
        return None
    kept, held = holdout(len(rows), share, seed=seed, **found)
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


def _repeats(
    task: Task, plan: FitPlan, keys: RowKeys, repeats: int
) -> tuple[list[Part], list[str]]:
    """Hold out rows that are not tested yet, as often as asked for."""
    n = len(task.y)
    size = int(n * plan.test)
    if size < 1:
        raise InvalidData(
            f"fit: the test part must hold a {task.unit} at least; {plan.test:g} of {n} is none. "
            "Raise --test."
        )
    pool, parts, notes = np.arange(n), list[Part](), list[str]()
    for seed in range(repeats):
        if not _enough(pool, size, keys):
            if keys.order is not None:
                break  # earlier windows would leave too little to learn from
            pool = np.arange(n)
        kept, held, remarks = _hold_out(task, plan, keys, pool, size, seed)
        train = kept if keys.order is not None else np.setdiff1d(np.arange(n), held)
        if parts and not _varied(task, train):
            break
        _check_classes(task, train)
        notes += [] if parts else remarks
        pool = kept
        parts.append(Part("", train, held, seed))
    if len(parts) == 1:
        return parts, notes
    return [replace(part, name=f"split-{part.seed + 1}") for part in parts], notes


def _enough(pool: np.ndarray, size: int, keys: RowKeys) -> bool:
    """Whether rows can be held out of a pool; by time, what is left must be as many again."""
    if keys.groups is not None and len(np.unique(keys.groups[pool])) < 2:
        return False
    return len(pool) >= (2 * size if keys.order is not None else size + 1)


def _hold_out(
    task: Task, plan: FitPlan, keys: RowKeys, pool: np.ndarray, size: int, seed: int
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Cut a pool of rows in two; classes keep their proportions where nothing else is asked."""
    share = (size + 0.5) / len(pool)
    if task.kind == "classification" and not any(key is not None for key in keys):
        return _stratified(task, pool, size, plan.seed + seed)
    found = {name: v[pool] for name, v in keys._asdict().items() if v is not None}
    kept, held = holdout(len(pool), share, seed=plan.seed + seed, **found)
    return pool[kept], pool[held], []


def _stratified(
    task: Task, pool: np.ndarray, size: int, seed: int
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Keep classes in proportion; rows of a class that has only one are trained on."""
    n, counts = len(task.y), np.bincount(task.codes)
    if len(counts) > min(size, n - size):
        raise InvalidData(
            f"fit: {plural(n, task.unit)} must suffice to test every class; the target has "
            f"{len(counts):,} classes and "
            f"the test part {plural(size, task.unit)}. Merge rare classes, raise --test, or use "
            "--task regression."
        )
    here = np.bincount(task.codes[pool], minlength=len(counts))
    alone = pool[here[task.codes[pool]] == 1]
    rest = np.setdiff1d(pool, alone)
    share = min((size + 0.5) / len(rest), 1.0)
    kept, held = holdout(len(rest), share, seed=seed, labels=task.codes[rest])
    notes = []
    if len(alone):
        rare = listing(task.y[alone].tolist(), "and", 5)
        notes = [f"Classes of a single {task.unit} can be trained on but not tested: {rare}."]
    return np.sort(np.concatenate([rest[kept], alone])), rest[held], notes


def _folds(task: Task, plan: FitPlan, keys: RowKeys) -> list[Part]:
    k, place, groups = int(plan.cv or 2), np.arange(len(task.y)), keys.groups
    if groups is not None:
        if len(np.unique(groups)) < k:
            raise InvalidData(
                f"fit: `--cv {k}` needs {k} groups at least; `{plan.group or 'the data'}` has "
                f"{len(np.unique(groups))}."
            )
        cuts = GroupKFold(k).split(place, groups=groups)
    elif keys.order is not None:
        place = np.argsort(keys.order, kind="stable")
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
        Part(f"fold-{i + 1}", np.sort(place[kept]), np.sort(place[held]), i)
        for i, (kept, held) in enumerate(cuts)
    ]
    for part in parts:
        _check_classes(task, part.train)
    return parts


def _varied(task: Task, rows: np.ndarray) -> bool:
    return task.kind != "classification" or len(np.unique(task.codes[rows])) > 1


def _check_classes(task: Task, rows: np.ndarray) -> None:
    if not _varied(task, rows):
        raise InvalidData(
            f"fit: the training part must hold two classes or more; it holds only "
            f"{task.y[rows[0]].item()!r}. Split in another way."
        )
