"""Which columns a model of tables uses: computed for a report, and shown in it."""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

import numpy as np
from markupsafe import Markup

from castalia.evaluate import PartialDependence, PermutationImportance, to_svg
from castalia.evaluate.sums import SUMS
from castalia.method.report.guarded_figure import Drawing, guarded
from castalia.method.report.run_report import RunReport
from castalia.method.report.score_formats import metric_label, score
from castalia.utils.text import listing

__all__ = ["column_importance", "importance_figures", "importance_rows"]

_LOG = logging.getLogger(__name__)
REPEATS = 5
LEAST, MOST = 200, 2_000  # rows
WORK = 1_000_000  # rows asked about in all
DRAWN = 2  # columns whose effect is drawn


def column_importance(model: Any, X: Any, y: np.ndarray, metric: str) -> dict[str, Any]:
    """Return the importance of each column on test rows, and the effect of the first ones."""
    rows = int(np.clip(WORK // (REPEATS * len(X.columns)), LEAST, MOST))
    try:
        found = PermutationImportance.from_estimator(
            model, X, y, metric=metric if metric in SUMS else None, repeats=REPEATS, most=rows
        )
        clear = [
            name for name, (low, _) in zip(found.columns, found.intervals, strict=True) if low > 0
        ]
        drawn = [PartialDependence.from_estimator(model, X, name) for name in clear[:DRAWN]]
    except (ValueError, ArithmeticError) as error:
        _LOG.warning("report: the importance of columns could not be computed: %s", error)
        return {}
    kept = ("columns", "values", "intervals", "metric", "score")
    return {
        **{name: getattr(found, name) for name in kept},
        "rows": min(rows, len(y)),
        "effects": [vars(each) for each in drawn],
    }


def importance_rows(report: RunReport) -> list[dict[str, str]]:
    """Return the table: column, loss of score, interval."""
    found = report.importance
    if not found:
        return []
    return [
        {
            "name": name,
            "value": score(value, found["metric"]),
            "interval": f"{score(low, found['metric'])} to {score(high, found['metric'])}",
            "clear": low > 0,
        }
        for name, value, (low, high) in zip(
            found["columns"], found["values"], found["intervals"], strict=True
        )
    ]


def importance_figures(report: RunReport) -> list[Drawing]:
    """Draw the importance of the columns, and how the first ones act."""
    if not report.importance:
        return []
    effects = report.importance["effects"]
    return [
        guarded("Importance", partial(_bars, report.importance)),
        *(guarded(each["column"], partial(_effect, i, each)) for i, each in enumerate(effects)),
    ]


def _bars(found: dict[str, Any]) -> tuple[Markup, str]:
    values, bounds = np.array(found["values"]), np.array(found["intervals"])
    display = PermutationImportance(
        found["columns"], values, bounds, found["metric"], found["score"]
    ).plot()
    first = [name for name, (low, _) in zip(found["columns"], bounds, strict=True) if low > 0]
    what = metric_label(found["metric"])
    alt = f"Loss of {what} when a column is shuffled. First: {listing(first, 'and', 5)}."
    words = "Grey bars: the interval reaches zero, so the column may not matter."
    return Markup(to_svg(display.figure_, alt, "importance")), words


def _effect(number: int, found: dict[str, Any]) -> tuple[Markup, str]:
    grid = np.array(found["grid"], dtype="datetime64[s]" if _dates(found["grid"]) else None)
    lines = np.array(found["lines"], dtype=float)
    display = PartialDependence(
        found["column"], grid, lines, found["output"], found["ordered"]
    ).plot()
    words = "Blue: the mean of all rows when the column is set to a value; grey: single rows."
    alt = f"What the model says over `{found['column']}`. {words}"
    return Markup(to_svg(display.figure_, alt, f"effect-{number}")), words


def _dates(grid: list[Any]) -> bool:
    """Whether values that went through JSON were dates."""
    first = grid[0] if grid else None
    return isinstance(first, str) and len(first) >= 10 and first[4:8:3] == "--"
