"""The trials of a search as axes and lines: what was tried, what came of it, what mattered."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from castalia.errors import CastaliaError
from castalia.method.settings_search import STUDY
from castalia.tune.search_record import SearchRecord
from castalia.tune.space import Choice, Domain
from castalia.tune.trial_record import COMPLETE, Trial

__all__ = ["searched"]

MOST = 2_000  # trials
_ROWS = "SELECT number, state, holder, beat, record FROM castalia_trials ORDER BY number LIMIT ?"
_FAULTS = (
    OSError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    CastaliaError,
    sqlite3.Error,
)
_mattered: dict[tuple[str, int], dict[str, float]] = {}


def searched(folder: Path) -> dict[str, Any] | None:
    """Return axes, trials and importances of the search in a run's folder; None without one."""
    try:
        record, trials = SearchRecord.read(folder), _trials(folder / STUDY)
        axes = [_axis(name, domain) for name, domain in record.space.items()]
        shown = [_trial(trial, record) for trial in trials]
    except (*_FAULTS, sqlite3.Error):
        return None
    return {
        "metric": record.metric,
        "higher": record.higher,
        "axes": axes,
        "trials": shown,
        "importances": list(_importances(folder, record, trials).items()),
    }


def _trials(path: Path) -> list[Trial]:
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
        return [Trial.read(*row) for row in database.execute(_ROWS, (MOST,))]


def _axis(name: str, domain: Domain) -> dict[str, Any]:
    """Return an axis; a choice has its words at 0, 1, 2 and so on."""
    short = {"name": name, "label": name.rpartition("__")[2]}
    if isinstance(domain, Choice):
        last = max(len(domain.values) - 1, 1)
        return {**short, "low": 0, "high": last, "log": False, "words": list(domain.values)}
    return {**short, "low": domain.low, "high": domain.high, "log": domain.log, "words": None}


def _trial(trial: Trial, record: SearchRecord) -> dict[str, Any]:
    return {
        "number": trial.number + 1,
        "state": trial.state,
        "score": record.score(trial) if trial.state == COMPLETE else None,
        "folds": len(trial.folds),
        "values": [float(trial.params[name]) for name in record.space],
        "reason": trial.reason,
    }


def _importances(folder: Path, record: SearchRecord, trials: list[Trial]) -> Mapping[str, float]:
    """Return what mattered, computed again when further trials are complete."""
    key = str(folder), sum(trial.state == COMPLETE for trial in trials)
    if key not in _mattered:
        try:
            _mattered[key] = record.importances(trials)
        except (CastaliaError, ImportError, ValueError):
            _mattered[key] = {}
    return _mattered[key]
