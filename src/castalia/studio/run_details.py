"""Everything the page of one run shows, as plain values."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from castalia.diagnose import Diagnosis, Finding
from castalia.errors import CastaliaError
from castalia.evaluate import METRICS, Calibration
from castalia.method.fit_result import MODEL, PAGE
from castalia.method.model_settings import written
from castalia.studio.curve_envelope import CurveViews, elapsed
from castalia.studio.process_resources import resources_of
from castalia.studio.run_files import diagnosis_of, layers_of, result_of
from castalia.studio.run_index import RunIndex, RunRow
from castalia.studio.search_trials import searched
from castalia.train.runs import Run, RunStore
from castalia.utils.file_locks import FolderLock

__all__ = ["RunDetails", "flattened", "store_of"]

_SHOWN = ("verdict", "outcome", "advice", "preflight", "data", "mistakes", "environment", "metric")
_MISTAKES = 20


@contextmanager
def store_of(store: RunStore, row: RunRow, part: str) -> Iterator[tuple[RunStore, int] | None]:
    """Open where the curves of a run, or of one of its trainings, are kept; None: nowhere."""
    if not part:
        yield store, row.number
        return
    if not (row.folder / "castalia.db").is_file():
        yield None
        return
    with RunStore(row.folder) as inner:
        found = inner.select("SELECT id FROM runs WHERE name = ?", (part,))
        yield (inner, int(found[0][0])) if found else None


class RunDetails:
    """Reads single runs.

    Parameters
    ----------
    index
        The rows of the runs.
    """

    def __init__(self, index: RunIndex) -> None:
        self.index, self.store, self.views = index, index.store, CurveViews()

    def of(self, name: str) -> dict[str, Any]:
        """Return one run: settings, scores, findings, trainings and their curves."""
        row = self.index.find(name)
        report = result_of(row.folder).get("report", {})
        trainings = list(self._trainings(row))
        return {
            **self.index.shown(row),
            **{key: report.get(key) for key in _SHOWN},
            "mistakes": (report.get("mistakes") or [])[:_MISTAKES],
            "label": METRICS[report["metric"]].label if report.get("metric") in METRICS else "",
            "contenders": report.get("contenders") or [],
            "recommended": report.get("recommended") or "",
            "command": str(row.config.get("command") or report.get("reproduce") or ""),
            "settings": flattened(report.get("settings") or row.config),
            "trainings": trainings,
            "search": searched(row.folder),
            "calibration": _calibration(report),
            "process": _process(row),
            "doctor": _doctor(row, trainings),
            "report": (row.folder / PAGE).is_file(),
            "usable": (row.folder / MODEL).is_dir(),
            "folder": str(row.folder),
        }

    def _trainings(self, row: RunRow) -> Iterator[dict[str, Any]]:
        """Return the run itself and the trainings inside it, those that have curves."""
        nested = (row.folder / "castalia.db").is_file()
        with RunStore(row.folder) if nested else nullcontext(self.store) as inner:
            inside = inner.runs() if nested else []
            parts = [("", row.folder, row.current, Run(self.store, row.number, row.name, {}))]
            for each in inside:
                opened = Run(inner, each["id"], each["name"], {})
                parts.append((each["name"], each["folder"], each["status"], opened))
            for name, folder, status, run in parts:
                found = {"part": name, "status": status, "keys": run.keys()}
                if name == "" or found["keys"]:
                    yield found | {"findings": run.findings(), "checkpoints": _checkpoints(folder)}

    def curve(
        self,
        name: str,
        part: str,
        key: str,
        span: tuple[int, int] | None,
        width: int,
        quick: bool,
    ) -> dict[str, Any]:
        """Return one curve at the width of a screen, over steps, epochs and seconds."""
        with store_of(self.store, self.index.find(name), part) as found:
            if found is None:
                return {"step": [], "exact": True}
            curve, exact = self.views.view(*found, key, span, width, quick)
            seconds, _ = self.views.view(*found, "seconds", None, width)
            spent = elapsed(seconds, curve.step)
        flat = bool(((curve.low == curve.high) | (curve.count == 0)).all())
        return {
            "step": curve.step.tolist(),
            "epoch": curve.epoch.tolist(),
            "time": None if spent is None else spent.tolist(),
            "mean": curve.mean.tolist(),
            "low": None if flat else curve.low.tolist(),
            "high": None if flat else curve.high.tolist(),
            "exact": exact,
        }


def flattened(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested settings under names with dots.

    Examples
    --------
    >>> flattened({"lr": 0.1, "training": {"clip": None}})
    {'lr': 0.1, 'training.clip': None}
    """
    found: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping) and value:
            found |= flattened(value, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = value
    return found


def _checkpoints(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "checkpoints").glob("step-*.safetensors"))


def _process(row: RunRow) -> dict[str, Any] | None:
    """Return who works in a run and what that costs; None where nobody does."""
    holder = FolderLock(row.folder).holder
    if holder is None:
        return None
    found = {key: holder[key] for key in ("host", "pid", "started")}
    return found | resources_of(holder["pid"])


def _calibration(report: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return how often a stated confidence is right; None without probabilities of classes."""
    truth, probability, classes = (report.get(n) for n in ("y_true", "probability", "classes"))
    if truth is None or probability is None or classes is None or not len(classes):
        return None
    try:
        found = Calibration.from_predictions(truth, probability, classes)
    except CastaliaError:  # a report that was cut
        return None
    parts = {"confidence": found.confidence, "accuracy": found.accuracy, "rows": found.count}
    return {name: part.tolist() for name, part in parts.items()} | {"error": found.error}


def _doctor(row: RunRow, trainings: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return findings with their numbers, and what was measured of each layer."""
    found = diagnosis_of(row.folder)
    if found is None:
        return None
    part = next((each["part"] for each in trainings if each["keys"]), "")
    command = str(row.config.get("command") or "")
    return {
        "verdict": _verdict(found),
        "part": part,
        "findings": [_finding(each, row, command) for each in found.findings],
        "notes": list(found.notes),
        "layers": {
            name: [list(pair) for pair in series]
            for name, series in found.curves.items()
            if series and isinstance(series[0][0], str)
        },
        "curves": layers_of(row.folder / part),
    }


def _verdict(diagnosis: Diagnosis) -> str:
    count = len(diagnosis.findings)
    if not count:
        return "Nothing was found."
    return f"{count} finding{'s' if count > 1 else ''}."


def _finding(found: Finding, row: RunRow, command: str) -> dict[str, Any]:
    plain = found.to_dict()
    return {
        **{key: plain[key] for key in ("code", "name", "severity", "confidence", "summary")},
        "where": found.where,
        "evidence": [{"text": str(each), **vars(each)} for each in found.evidence],
        "remedy": found.remedy.text,
        "code_line": _remedy_line(found, row, command),
        "source": None
        if found.source is None
        else {"place": str(found.source), "text": found.source.text},
        "step": found.step,
        "symptoms": [_finding(each, row, command) for each in found.symptoms],
    }


def _remedy_line(found: Finding, row: RunRow, command: str) -> str:
    """Return the command, or the line of code, that applies a remedy; nothing without one."""
    changes = found.remedy.changes
    if not changes:
        return ""
    if command.startswith("castalia fit"):
        words = [
            f"--set {shlex.quote(f'{name}={written(value)}')}" for name, value in changes.items()
        ]
        return " ".join([command, *words])
    estimator = row.config.get("estimator")
    if not estimator:  # somebody's script: its line is named instead
        return ""
    words = [f"{name}={value!r}" for name, value in changes.items()]
    return f"{estimator}(…).set_params({', '.join(words)})"
