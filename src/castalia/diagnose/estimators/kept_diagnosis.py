"""The diagnosis of an estimator, from what was kept of its fit."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from castalia.diagnose.diagnosis import Diagnosis
from castalia.diagnose.estimators.estimator_rules import judge_estimator
from castalia.diagnose.estimators.prescription import prescribe
from castalia.diagnose.estimators.watcher import DIAGNOSIS
from castalia.diagnose.record import Record
from castalia.errors import InvalidData
from castalia.utils.regular_files import read_regular
from castalia.utils.text import did_you_mean

__all__ = ["diagnosis_of", "stored_diagnosis"]

UNWATCHED = (
    "The fit was too short to be watched; Training(watch=True) watches it, diagnose(est, X, y) "
    "fits it once more and watches."
)


def stored_diagnosis(run: str | os.PathLike[str]) -> Diagnosis:
    """Return the diagnosis that a training left in its run's folder."""
    folder = Path(run)
    path = folder / DIAGNOSIS
    if not folder.is_dir():
        near = [p.name for p in folder.parent.iterdir()] if folder.parent.is_dir() else []
        raise InvalidData(
            f"diagnose: `{folder}` must be the folder of a run; there is "
            f"none.{did_you_mean(folder.name, near)}"
        )
    if not path.is_file():
        raise InvalidData(
            f"diagnose: `{folder}` must be the folder of a run that was watched to its end; it has "
            f"no `{DIAGNOSIS}`. Finish the run, with Training(watch=True)."
        )
    return Diagnosis.from_json(read_regular(path))


def diagnosis_of(estimator: Any) -> Diagnosis:
    """Return what the doctor found while a fitted estimator was fitted.

    Parameters
    ----------
    estimator
        One of ours, fitted by the loop; its run's folder is asked where nothing was kept in memory.
    """
    record: Record | None = estimator._record
    subject = type(estimator).__name__
    if record is not None and (record.steps or record.notes):
        return prescribe(judge_estimator(record, estimator), estimator)
    run = getattr(estimator, "run_", None)
    stored = None if run is None else Path(run) / DIAGNOSIS
    if stored is not None and stored.is_file():
        return replace(Diagnosis.from_json(read_regular(stored)), estimator=estimator)
    return Diagnosis(notes=(UNWATCHED,), subject=subject, estimator=estimator)
