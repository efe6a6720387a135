"""The remedies of a diagnosis, made on a clone of the estimator.

scikit-learn is imported when a remedy is made: a watched script may not need it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from castalia.diagnose.diagnosis_record import DiagnosisRecord
from castalia.diagnose.finding_record import Finding
from castalia.diagnose.thresholds import limit
from castalia.errors import InvalidParameter

__all__ = ["INPUTS", "TARGETS", "changed", "inner", "repaired", "treatment"]

INPUTS, TARGETS = "inputs", "targets"  # not settings: what to standardise around the estimator


def repaired(diagnosis: DiagnosisRecord) -> Any:
    """Return a repaired, unfitted estimator; see ``Diagnosis.apply``."""
    if diagnosis.estimator is None:
        raise InvalidParameter(
            "Diagnosis.apply: must be asked of the diagnosis of a Castalia estimator, as "
            "diagnose(est, X, y) gives it; this one is of "
            f"{diagnosis.subject or 'a loop of your own'}. Make the changes that its remedies name."
        )
    return changed(diagnosis.estimator, treatment(diagnosis.findings))


def treatment(findings: Iterable[Finding]) -> dict[str, Any]:
    """Return the changes of all causes together; of two for one setting, that of the earlier.

    What is only worth knowing is left alone, unless something is wrong and it is likely part of it.
    """
    changes: dict[str, Any] = {}
    findings = list(findings)
    wrong = any(found.severity != "info" for found in findings)
    for found in findings:
        if found.severity == "info" and not (
            wrong and found.confidence >= limit("estimator.likely")
        ):
            continue
        for name, value in _changes(found).items():
            changes.setdefault(name, value)
    return changes


def _changes(found: Finding) -> dict[str, Any]:
    """Return the changes of a cause; those of its symptoms where the cause itself has none."""
    return dict(found.remedy.changes) or treatment(found.symptoms)


def changed(estimator: Any, changes: dict[str, Any]) -> Any:
    """Return a clone with the changes made, wrapped where inputs or targets are standardised."""
    from sklearn.base import clone, is_regressor
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    changes = dict(changes)
    scale_inputs, scale_targets = (changes.pop(name, None) for name in (INPUTS, TARGETS))
    fresh = clone(estimator)
    model = inner(fresh)
    model.set_params(**changes)
    if getattr(model, "training", None) is not None:
        model.training.run = None  # a run belongs to the settings that began it
    if scale_inputs:
        fresh = make_pipeline(StandardScaler(), fresh)
    if scale_targets and is_regressor(model):
        fresh = TransformedTargetRegressor(fresh, transformer=StandardScaler())
    return fresh


def inner(estimator: Any) -> Any:
    """Return our estimator, out of pipelines and target transformers."""
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.pipeline import Pipeline

    if isinstance(estimator, Pipeline):
        return inner(estimator.steps[-1][1])
    if isinstance(estimator, TransformedTargetRegressor):
        return inner(estimator.regressor)
    return estimator
