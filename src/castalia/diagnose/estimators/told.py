"""The diagnosis of an estimator, from what was kept of its fit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from castalia.diagnose.diagnosis import Diagnosis
from castalia.diagnose.estimators.judging import judge_estimator
from castalia.diagnose.estimators.prescribing import prescribe
from castalia.diagnose.estimators.watcher import DIAGNOSIS
from castalia.diagnose.record import Record

__all__ = ["diagnosis_of"]

UNWATCHED = (
    "The fit was too short to be watched; Training(watch=True) watches it, diagnose(est, X, y) "
    "fits it once more and watches."
)


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
        return replace(Diagnosis.from_json(stored.read_text()), estimator=estimator)
    return Diagnosis(notes=(UNWATCHED,), subject=subject, estimator=estimator)
