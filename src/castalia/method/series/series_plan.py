"""Whether a plan names series to forecast or sequences to classify, and reading them."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from castalia.data import Dataset, read
from castalia.data.sequences import Sequences, read_sequences, read_signals
from castalia.data.sequences.missing_steps import fill
from castalia.errors import InvalidData, InvalidParameter
from castalia.method.fit_plan import NO_TIME, FitPlan
from castalia.method.fit_table import load_table
from castalia.utils.text import listing, plural

__all__ = [
    "names_sequences",
    "names_series",
    "read_labelled_sequences",
    "read_labelled_signals",
    "read_series",
    "table_of",
]


def names_series(plan: FitPlan) -> bool:
    """Whether a plan asks for a forecast: by a horizon, or by series with nothing but times."""
    if plan.target is None or not _is_table(plan.data):
        return False
    if plan.horizon is not None:
        return True
    if plan.time in (None, NO_TIME):
        return False
    return plan.group is not None or set(_columns(plan)) == {plan.time, plan.target}


def names_sequences(plan: FitPlan) -> bool:
    """Whether a plan asks for the class or number of sequences: one target in each group."""
    named = plan.group is not None and plan.time not in (None, NO_TIME)
    if not named or plan.target is None or plan.horizon is not None or not _is_table(plan.data):
        return False
    if not {plan.target, plan.group} <= set(_columns(plan)):
        return False
    table = table_of(plan)
    target, group = (table.column(str(name)).astype(str) for name in (plan.target, plan.group))
    pairs = len(np.unique(np.char.add(np.char.add(group, "\0"), target)))
    return pairs == len(np.unique(group)) > 1


def _is_table(data: Any) -> bool:
    return not isinstance(data, list | tuple) and not (
        isinstance(data, str | os.PathLike) and os.path.isdir(data)
    )


def table_of(plan: FitPlan) -> Dataset:
    """Read the table that a plan names."""
    return load_table(plan.data, header=plan.header, encoding=plan.encoding)[0]


def _columns(plan: FitPlan) -> list[str]:
    return list(table_of(plan).columns)


def read_labelled_sequences(plan: FitPlan) -> tuple[Sequences, np.ndarray]:
    """Return the sequences that a plan names, without their targets, and these."""
    found = read_sequences(
        _without(table_of(plan), plan.drop), group=plan.group, time=plan.time, target=plan.target
    )
    if found.target is None or not len(found.channels):
        raise InvalidData("fit: sequences must have channels beside group, time and target.")
    found.steps = [_without_holes(each) for each in found.steps]
    return found.features(), np.asarray(found.target)


def read_labelled_signals(plan: FitPlan) -> tuple[Sequences, np.ndarray]:
    """Return the WAV files of a folder that a plan names, and their classes."""
    found = read_signals(plan.data)
    if found.target is None:
        raise InvalidData(
            f"fit: WAV files of {plan.name} must be in a folder for each class; they are in one."
        )
    return found.features(), np.asarray(found.target)


def _without(table: Dataset, drop: tuple[str, ...]) -> Dataset:
    return table.select([name for name in table.columns if name not in drop]) if drop else table


def _without_holes(each: np.ndarray) -> np.ndarray:
    """Return steps of numbers with infinity as missing, too."""
    return each if each.dtype == object else np.where(np.isfinite(each), each, np.nan)


def read_series(
    data: Any, target: str, time: str | None, group: str | None, drop: tuple[str, ...] = ()
) -> Sequences:
    """Return series whose first channel is the target; other columns of numbers follow.

    Missing steps are inserted and missing values filled in with the last value before them.
    """
    table = data if isinstance(data, Dataset) else read(data)
    if target not in table.columns:
        raise InvalidParameter(
            f"fit: `target` must be a column, one of {listing(table.columns, 'and', 8)}; got "
            f"{target!r}."
        )
    kinds = {column.name: column.kind for column in table.schema}
    values = table.column(target)
    if values.dtype.kind not in "iuf":
        raise InvalidData(
            f"fit: the target of a forecast must hold numbers; `{target}` holds {values[0]!r}. "
            "States along a sequence are for RNNTagger, in Python."
        )
    free = [name for name in table.columns if name not in (target, time, group, *drop)]
    others = [name for name in free if kinds.get(name) == "numeric"]
    found = read_sequences(
        table, group=group, time=time, columns=[target, *others], differences=False
    )
    constant = [name for name in free if kinds.get(name) == "constant"]
    if constant:
        verb = "changes" if len(constant) == 1 else "change"
        found.notes.append(f"{listing(constant, 'and', 6)} never {verb}: left out.")
    return _filled(_on_grid(found))


def _on_grid(series: Sequences) -> Sequences:
    """Insert the steps that are missing in series of even steps."""
    if series.times is None:
        return series
    if any("different steps" in note for note in series.notes):
        raise InvalidData(
            f"fit: series to forecast must have steps of one length; {series.notes[-1]} Bring "
            "them to one frequency first."
        )
    steps, times = [], []
    for values, when in zip(series.steps, series.times, strict=True):
        place = _places(when)
        if place is None:
            return series
        whole = np.full((int(place[-1]) + 1, values.shape[1]), np.nan)
        whole[place] = values
        gap = (when[-1] - when[0]) / max(int(place[-1]), 1)
        steps.append(whole)
        times.append(when[0] + np.arange(len(whole)) * gap)
    return Sequences(
        steps, channels=series.channels, ids=series.ids, times=times, notes=series.notes
    )


def _places(when: np.ndarray) -> np.ndarray | None:
    """Return the place of each step on an even grid; None where there is none, or no gap."""
    if len(when) < 3:
        return None
    passed = (when - when[0]).astype(float)
    step = float(np.median(np.diff(passed)))
    place = np.round(passed / step)
    even = np.abs(passed / step - place).max() < 0.01
    return place.astype(int) if even and place[-1] > len(when) - 1 else None


def _filled(series: Sequences) -> Sequences:
    """Fill in missing values, and say how many there were."""
    holes = sum(int((~np.isfinite(each)).sum()) for each in series)
    if holes:
        every = np.concatenate(series.steps)
        known = np.where(np.isfinite(every), every, np.nan)
        empty = ~np.isfinite(known).any(axis=0)
        if empty.any():
            name = series.channels[int(empty.argmax())]
            raise InvalidData(f"fit: column `{name}` must have a value somewhere; it has none.")
        series.steps = [fill(each, "forward", np.nanmean(known, axis=0)) for each in series]
        words = f"{plural(holes, 'missing value')} filled in with the last value before."
        series.notes = [*series.notes, words]
    return series
