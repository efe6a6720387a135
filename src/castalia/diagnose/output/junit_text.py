"""A diagnosis as JUnit XML, which every CI server shows as a table of tests."""

from __future__ import annotations

import re
from xml.etree import ElementTree as Xml

from castalia.diagnose.diagnosis_record import DiagnosisRecord
from castalia.diagnose.finding_codes import SEVERITIES
from castalia.diagnose.finding_record import Finding

__all__ = ["to_junit"]


def to_junit(diagnosis: DiagnosisRecord, fail_on: str = "warning") -> str:
    """Return one test suite: a test case for every finding, failed from a severity on.

    Parameters
    ----------
    diagnosis
        What was found.
    fail_on
        ``"error"``, ``"warning"`` or ``"info"``: the mildest severity that is a failure.

    Examples
    --------
    >>> from castalia.diagnose import Diagnosis
    >>> print(to_junit(Diagnosis(subject="train.py")))
    <?xml version="1.0" encoding="utf-8"?>
    <testsuite name="castalia doctor: train.py" tests="1" failures="0">
      <testcase classname="castalia.doctor" name="no findings" />
    </testsuite>
    """
    serious = SEVERITIES[: SEVERITIES.index(fail_on) + 1]
    failed = sum(found.severity in serious for found in diagnosis.findings)
    suite = Xml.Element(
        "testsuite",
        name=f"castalia doctor: {diagnosis.subject or 'training'}",
        tests=str(max(len(diagnosis.findings), 1)),
        failures=str(failed),
    )
    for found in diagnosis.findings:
        _add(suite, found, found.severity in serious)
    if not diagnosis.findings:
        Xml.SubElement(suite, "testcase", classname="castalia.doctor", name="no findings")
    Xml.indent(suite)
    text = Xml.tostring(suite, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{_allowed(text)}'


def _add(suite: Xml.Element, found: Finding, failed: bool) -> None:
    place = f" in {found.where}" if found.where else ""
    case = {"classname": "castalia.doctor", "name": f"{found.code} {found.name}{place}"}
    if found.source:
        case |= {"file": found.source.path, "line": str(found.source.line)}
    element = Xml.SubElement(suite, "testcase", case)
    words = "\n".join(
        [
            found.summary,
            *map(str, found.evidence),
            f"→ {found.remedy}",
            f"castalia explain {found.code}",
        ]
    )
    if failed:
        about = {"type": found.severity, "message": found.summary}
        Xml.SubElement(element, "failure", about).text = words
    else:
        Xml.SubElement(element, "system-out").text = words


def _allowed(text: str) -> str:
    """Leave out the control characters that XML cannot hold."""
    strange = re.compile(r"[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
    return strange.sub("", text)
