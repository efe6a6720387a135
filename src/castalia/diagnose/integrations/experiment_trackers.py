"""A diagnosis in TensorBoard, Weights & Biases or MLflow: counts, confidences, tags, text."""

from __future__ import annotations

from typing import Any

from castalia.diagnose.diagnosis_record import DiagnosisRecord
from castalia.errors import InvalidParameter

__all__ = ["log_diagnosis"]


def log_diagnosis(diagnosis: DiagnosisRecord, tracker: Any, step: int | None = None) -> None:
    """Log a diagnosis where the other figures of a training are.

    Logged are ``doctor/errors``, ``doctor/warnings`` and the confidence of every finding as
    ``doctor/CST112``; the worst severity and the codes as tags; and the whole text.

    Parameters
    ----------
    diagnosis
        What was found.
    tracker
        A ``SummaryWriter`` of TensorBoard, a ``Run`` of Weights & Biases, or the module ``mlflow``.
    step
        The training step.

    Examples
    --------
    >>> from castalia.diagnose import Diagnosis, finding
    >>> class Writer:
    ...     def add_scalar(self, name, value, step):
    ...         print(name, value)
    ...     def add_text(self, name, text, step):
    ...         print(name)
    >>> rate = finding("CST101", "error", 0.95, "The loss grows.", "lr=3.0 → 0.05")
    >>> log_diagnosis(Diagnosis((rate,)), Writer())
    doctor/errors 1.0
    doctor/warnings 0.0
    doctor/CST101 0.95
    doctor/diagnosis
    """
    if hasattr(tracker, "add_scalar") and hasattr(tracker, "add_text"):
        for name, value in _scalars(diagnosis).items():
            tracker.add_scalar(name, value, step)
        indented = "\n".join(f"    {line}" for line in str(diagnosis).splitlines())
        tracker.add_text("doctor/diagnosis", indented, step)  # Markdown: code
    elif hasattr(tracker, "set_tags") and hasattr(tracker, "log_metrics"):
        tracker.log_metrics(_scalars(diagnosis), step=step)
        tracker.set_tags(_tags(diagnosis))
        tracker.log_text(str(diagnosis), "doctor/diagnosis.txt")
    elif hasattr(tracker, "log") and hasattr(tracker, "summary"):
        tracker.log(_scalars(diagnosis), **({} if step is None else {"step": step}))
        tracker.summary.update(_tags(diagnosis) | {"doctor.diagnosis": str(diagnosis)})
    else:
        raise InvalidParameter(
            "Diagnosis.log_to: the tracker must be a SummaryWriter of TensorBoard, a Run of "
            f"Weights & Biases or the module mlflow; got {type(tracker).__name__}."
        )


def _scalars(diagnosis: DiagnosisRecord) -> dict[str, float]:
    found = [each.severity for each in diagnosis.findings]
    counts = {f"doctor/{kind}s": float(found.count(kind)) for kind in ("error", "warning")}
    return counts | {f"doctor/{each.code}": each.confidence for each in diagnosis.findings}


def _tags(diagnosis: DiagnosisRecord) -> dict[str, str]:
    return {
        "doctor.worst": diagnosis.worst or "none",
        "doctor.codes": " ".join(diagnosis.codes) or "none",
    }
