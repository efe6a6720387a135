"""What every way of writing a diagnosis says in the same words."""

from __future__ import annotations

from castalia.diagnose.diagnosis_record import DiagnosisRecord
from castalia.diagnose.finding_codes import SEVERITIES
from castalia.utils.text import plural

__all__ = ["EXPLAINS", "NOTES", "verdict"]

EXPLAINS = "It explains:"
NOTES = "Could not be checked:"


def verdict(diagnosis: DiagnosisRecord) -> str:
    """Count the causes by severity, or say that there is none.

    >>> from castalia.diagnose import Diagnosis, finding
    >>> verdict(Diagnosis())
    'nothing wrong was found'
    >>> verdict(Diagnosis([finding("CST111", "info", 0.6, "Both losses still fall.", "Go on.")]))
    'nothing wrong was found, 1 thing worth knowing'
    """
    found = [each.severity for each in diagnosis.findings]
    counts = {severity: found.count(severity) for severity in SEVERITIES}
    faults = [plural(counts[kind], kind) for kind in ("error", "warning") if counts[kind]]
    words = faults or ["nothing wrong was found"]
    if counts["info"]:
        words.append(f"{plural(counts['info'], 'thing')} worth knowing")
    return ", ".join(words)
