"""A diagnosis as strict JSON, and back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from castalia.diagnose.diagnosis_record import DiagnosisRecord
from castalia.diagnose.finding_codes import SEVERITIES
from castalia.diagnose.finding_record import Evidence, Finding, Remedy, SourceLine
from castalia.errors import CheckpointMismatch, DamagedFile
from castalia.utils.regular_files import parse_json
from castalia.utils.text import shorten

__all__ = ["from_text", "to_text"]

FORMAT = 1
# JSON has no such numbers; a tag keeps the file readable by every parser.
TAG = "$number"
_KINDS: dict[Any, Any] = {
    "str": str,
    "bool": bool,
    "int": int,
    "float": int | float,
    "float | None": int | float | None,
    "int | None": int | None,
    "str | None": str | None,
}
ODD = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def to_text(diagnosis: DiagnosisRecord) -> str:
    """Write a diagnosis; the estimator stays behind."""
    content = {
        "format": FORMAT,
        "subject": diagnosis.subject,
        "worst": diagnosis.worst,
        "findings": [found.to_dict() for found in diagnosis.findings],
        "notes": diagnosis.notes,
        "curves": diagnosis.curves,
    }
    return json.dumps(_plain(content), indent=2, ensure_ascii=False, allow_nan=False)


def from_text(text: str | bytes) -> dict[str, Any]:
    """Read what ``to_text`` wrote, as the fields of a ``Diagnosis``."""
    content = _parsed(text)
    if content["format"] != FORMAT:
        raise CheckpointMismatch(
            f"Diagnosis.from_json: the format must be {FORMAT}; got {content['format']!r}. "
            f"Read it with the release that wrote it."
        )
    try:
        found = {
            "findings": tuple(_finding(found) for found in content["findings"]),
            "notes": tuple(_of(str, note) for note in content["notes"]),
            "subject": _of(str, content["subject"]),
            "curves": content["curves"],
        }
        DiagnosisRecord(**found)
        return found
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise _damaged(text) from error


def _parsed(text: str | bytes) -> dict[str, Any]:
    try:
        content = parse_json(text, _untagged)
    except ValueError as error:
        raise DamagedFile(f"Diagnosis.from_json: the text must be JSON; {error}.") from error
    if not isinstance(content, dict) or "format" not in content:
        raise _damaged(text)
    return content


def _damaged(text: str | bytes) -> DamagedFile:
    return DamagedFile(
        f"Diagnosis.from_json: the text must be a diagnosis written by `to_json`; got "
        f"{shorten(text[:200], 40)!r}."
    )


def _finding(content: Mapping[str, Any]) -> Finding:
    changes = {name: _tuples(value) for name, value in content["remedy"]["changes"].items()}
    read = {
        "evidence": tuple(_record(Evidence, each) for each in content["evidence"]),
        "remedy": Remedy(_of(str, content["remedy"]["text"]), changes),
        "severity": SEVERITIES[SEVERITIES.index(content["severity"])],
        "symptoms": tuple(_finding(each) for each in content["symptoms"]),
        "source": _record(SourceLine, source) if (source := content.get("source")) else None,
    }
    return _record(Finding, {**content, **read})


def _record(cls: type, content: Mapping[str, Any]) -> Any:
    """Fill a record; a field of a later release is passed over."""
    found = {each.name: content[each.name] for each in fields(cls) if each.name in content}
    for each in fields(cls):
        if each.name in found and each.type in _KINDS:
            _of(_KINDS[each.type], found[each.name])
    return cls(**found)


def _of(kind: Any, value: Any) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{kind} for {type(value).__name__}")
    return value


def _tuples(value: Any) -> Any:
    """Turn lists into tuples, as parameters of estimators are written."""
    return tuple(_tuples(each) for each in value) if isinstance(value, list) else value


def _plain(value: Any) -> Any:
    """Turn any value into what strict JSON can hold; what is strange becomes text."""
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {TAG: str(float(value))}
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(each) for each in value]
    if hasattr(value, "tolist"):  # numpy and torch
        return _plain(value.tolist())
    return str(value)


def _untagged(value: dict[str, Any]) -> Any:
    return ODD[value[TAG]] if len(value) == 1 and value.get(TAG) in ODD else value
