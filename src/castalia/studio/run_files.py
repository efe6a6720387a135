"""What the files of a run say: its result and its diagnosis, read again only when they change."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from castalia.diagnose import Diagnosis
from castalia.diagnose.estimators import DIAGNOSIS
from castalia.diagnose.record.layer_curves import LAYERS
from castalia.errors import CastaliaError
from castalia.method.fit_result import RESULT
from castalia.method.report.plain_values import from_text
from castalia.utils.regular_files import parse_json, read_regular

__all__ = ["diagnosis_of", "result_of", "summary_of", "worst_of"]

_FAULTS = (OSError, ValueError, LookupError, TypeError, AttributeError, CastaliaError)


class _ByChange:
    """Remembers what was made of a file until the file changes."""

    def __init__(self, make: Callable[[bytes], Any], most: int) -> None:
        self.make, self.most = make, most
        self._kept: OrderedDict[str, tuple[Any, Any]] = OrderedDict()
        self._lock = threading.Lock()

    def __call__(self, path: Path) -> Any:
        """Return it; None where the file is absent or damaged."""
        name = str(path)
        try:
            facts = os.stat(name)
        except OSError:
            return None
        mark = (facts.st_mtime_ns, facts.st_size)
        with self._lock:
            if name in self._kept and self._kept[name][0] == mark:
                self._kept.move_to_end(name)
                return self._kept[name][1]
        try:
            made = self.make(read_regular(path))
        except _FAULTS:
            made = None
        with self._lock:
            self._kept[name] = (mark, made)
            while len(self._kept) > self.most:
                self._kept.popitem(last=False)
        return made


def _summarised(content: bytes) -> dict[str, Any]:
    """Return the score of the recommended model and its name."""
    summary = from_text(content)["summary"]
    metric, models = summary["metric"], {each["name"]: each for each in summary["contenders"]}
    name = summary.get("models", {}).get(summary.get("recommended")) or list(models)[-1]
    value = models[name]["scores"].get(metric)
    value = None if value is None else float(value)
    score = {"metric": str(metric), "value": value, "by": str(name)}
    return {"score": score | {"interval": models[name].get("interval")}, "recommended_name": name}


_summaries = _ByChange(_summarised, 20_000)
_results = _ByChange(from_text, 8)
_worsts = _ByChange(lambda content: parse_json(content)["worst"], 20_000)
_diagnoses = _ByChange(Diagnosis.from_json, 8)
_layers = _ByChange(parse_json, 8)


def summary_of(folder: Path) -> dict[str, Any]:
    """Return score and recommended model of a run; nothing where it has no result yet."""
    return _summaries(folder / RESULT) or {}


def result_of(folder: Path) -> dict[str, Any]:
    """Return summary and report of a finished fit; nothing otherwise."""
    found = _results(folder / RESULT)
    return found if isinstance(found, dict) else {}


def worst_of(folder: Path) -> str:
    """Return the worst severity that the doctor found: error, warning, info or nothing."""
    found = _worsts(folder / DIAGNOSIS)
    return found if found in ("error", "warning", "info") else ""


def diagnosis_of(folder: Path) -> Diagnosis | None:
    """Return what the doctor found in a training; None where nobody watched."""
    found = _diagnoses(folder / DIAGNOSIS)
    return found if isinstance(found, Diagnosis) else None


def layers_of(folder: Path) -> dict[str, Any]:
    """Return what was measured of each layer over the steps of a training."""
    found = _layers(folder / LAYERS)
    return found if isinstance(found, dict) else {}
