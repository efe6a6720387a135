"""Runs beside each other: settings that differ, scores, and whether the scores differ for sure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from castalia.errors import CastaliaError, InvalidParameter
from castalia.evaluate import METRICS, Interval, paired_difference
from castalia.studio.run_details import RunDetails, flattened
from castalia.studio.run_files import result_of
from castalia.studio.run_index import RunRow

__all__ = ["compared"]

MOST = 100  # runs
PAIRED = ("accuracy", "balanced_accuracy", "r2", "mse", "rmse", "mae")  # scores of single answers


def compared(details: RunDetails, names: Sequence[str]) -> dict[str, Any]:
    """Return what several runs have in common and apart; the first is what others are held to."""
    if not 1 <= len(names) <= MOST:
        raise InvalidParameter(f"studio: compare 2 to {MOST} runs; got {len(names)}.")
    rows = [details.index.find(name) for name in names]
    runs = [_run(details, row) for row in rows]
    return {
        "runs": runs,
        "settings": _different([_settings(row) for row in rows]),
        "differences": [_difference(rows[0], row) for row in rows[1:]],
    }


def _run(details: RunDetails, row: RunRow) -> dict[str, Any]:
    found = details.of(row.name)
    names = ("name", "status", "score", "worst", "trainings", "tags", "label")
    return {name: found[name] for name in names}


def _settings(row: RunRow) -> dict[str, Any]:
    """Return what was asked for, and the settings of the network that came of it."""
    chosen = result_of(row.folder).get("report", {}).get("settings") or {}
    return flattened(chosen) | flattened({k: v for k, v in row.config.items() if k != "command"})


def _different(settings: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the settings whose values are not the same in all runs."""
    names = dict.fromkeys(name for each in settings for name in each)
    table = {name: [each.get(name) for each in settings] for name in names}
    return [
        {"name": name, "values": values}
        for name, values in table.items()
        if any(value != values[0] for value in values)
    ]


def _difference(base: RunRow, other: RunRow) -> dict[str, Any]:
    """Return how much better the other run is, with an interval where the rows allow one."""
    nothing: dict[str, Any] = {"name": other.name, "words": ""}
    one, two = (result_of(row.folder).get("report", {}) for row in (base, other))
    metric = one.get("metric")
    if not metric or metric != two.get("metric"):
        return nothing | {"words": "scored by different metrics" if metric else "no test scores"}
    try:
        found, how = _interval(metric, one, two)
    except (CastaliaError, LookupError, TypeError, ValueError):
        return nothing | {"words": "the scores cannot be compared"}
    higher = METRICS[metric].higher if metric in METRICS else True
    return nothing | {
        "metric": metric,
        "value": found.mean,
        "interval": [found.low, found.high] if found.known else None,
        "sure": found.excludes(0.0),
        "better": (found.mean > 0) == higher,
        "words": f"{_sentence(found, higher)} ({how})",
    }


def _interval(metric: str, one: dict[str, Any], two: dict[str, Any]) -> tuple[Interval, str]:
    """Return the difference of two scores: paired where both answered the same rows."""
    same = one.get("y_true") is not None and one.get("y_true") == two.get("y_true")
    if same and metric in PAIRED:
        answers = (one["y_true"], two["y_pred"], one["y_pred"])
        return paired_difference(metric, *answers), "paired bootstrap over the same test rows"
    pair = [_score(metric, report) for report in (two, one)]
    mean = pair[0].mean - pair[1].mean
    if not all(each.known for each in pair):
        return Interval(mean, math.nan, math.nan, 0), "no intervals"
    reach = math.hypot(*((each.high - each.low) / 2 for each in pair))
    return Interval(mean, mean - reach, mean + reach, 0), "two separate intervals"


def _score(metric: str, report: dict[str, Any]) -> Interval:
    """Return the score of the model that a run recommends."""
    name = report.get("recommended")
    found = next(each for each in report["contenders"] if each["name"] == name)
    low, high = found.get("interval") or (math.nan, math.nan)
    return Interval(float(found["scores"][metric]), low, high, 0)


def _sentence(found: Interval, higher: bool) -> str:
    if not found.known:
        return "not known whether this is more than chance"
    if not found.excludes(0.0):
        return "no difference that these rows can show"
    return "better than chance explains" if (found.mean > 0) == higher else "worse, beyond chance"
