"""A diagnosis as SARIF 2.1.0, which code hosts and editors show at the lines it names."""

from __future__ import annotations

import json
from pathlib import PurePath
from typing import Any

from castalia import __version__
from castalia.diagnose.diagnosis_record import DiagnosisRecord
from castalia.diagnose.finding_record import Finding, SourceLine

__all__ = ["to_sarif"]

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {"error": "error", "warning": "warning", "info": "note"}


def to_sarif(diagnosis: DiagnosisRecord) -> str:
    """Return a log with one result for every finding.

    A finding without a line of its own stands at the first line of the script, where one is known:
    most viewers drop results without a place.

    Examples
    --------
    >>> from castalia.diagnose import Diagnosis, finding
    >>> rate = finding("CST101", "error", 0.95, "The loss grows.", "lr=3.0 → 0.05")
    >>> log = json.loads(to_sarif(Diagnosis((rate,), subject="train.py")))
    >>> log["runs"][0]["results"][0]["ruleId"], log["runs"][0]["results"][0]["level"]
    ('CST101', 'error')
    """
    script = SourceLine(diagnosis.subject, 1) if diagnosis.subject.endswith(".py") else None
    rules = {found.code: _rule(found) for found in diagnosis.findings}
    tool = {"name": "castalia doctor", "version": __version__, "rules": list(rules.values())}
    results = [_result(found, found.source or script) for found in diagnosis.findings]
    log = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": tool}, "results": results}],
    }
    return json.dumps(log, indent=2, ensure_ascii=False)


def _rule(found: Finding) -> dict[str, Any]:
    return {"id": found.code, "name": found.name, "shortDescription": {"text": found.name}}


def _result(found: Finding, source: SourceLine | None) -> dict[str, Any]:
    words = [found.summary, *map(str, found.evidence), f"→ {found.remedy}"]
    result: dict[str, Any] = {
        "ruleId": found.code,
        "level": LEVELS[found.severity],
        "message": {"text": "\n".join(words)},
        "rank": round(100 * found.confidence, 1),
    }
    if source is not None:
        file = {"uri": PurePath(source.path).as_posix()}
        place = {"artifactLocation": file, "region": {"startLine": source.line}}
        result["locations"] = [{"physicalLocation": place}]
    return result
