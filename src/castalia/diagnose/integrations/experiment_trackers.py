"""A diagnosis in TensorBoard, Weights & Biases or MLflow: counts, confidences, tags, text."""

from __future__ import annotations

from typing import Any

from castalia.diagnose.diagnosis_record import DiagnosisRecord
from castalia.train.tracker_callback import send_numbers, tracker_kind

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
    kind = tracker_kind(tracker, "Diagnosis.log_to")
    send_numbers(tracker, _scalars(diagnosis), step)
    if kind == "tensorboard":
        indented = "\n".join(f"    {line}" for line in str(diagnosis).splitlines())
        tracker.add_text("doctor/diagnosis", indented, step)  # Markdown: code
    elif kind == "mlflow":
        tracker.set_tags(_tags(diagnosis))
        tracker.log_text(str(diagnosis), "doctor/diagnosis.txt")
    else:
        tracker.summary.update(_tags(diagnosis) | {"doctor.diagnosis": str(diagnosis)})


def _scalars(diagnosis: DiagnosisRecord) -> dict[str, float]:
    found = [each.severity for each in diagnosis.findings]
    counts = {f"doctor/{kind}s": float(found.count(kind)) for kind in ("error", "warning")}
    return counts | {f"doctor/{each.code}": each.confidence for each in diagnosis.findings}


def _tags(diagnosis: DiagnosisRecord) -> dict[str, str]:
    return {
        "doctor.worst": diagnosis.worst or "none",
        "doctor.codes": " ".join(diagnosis.codes) or "none",
    }
