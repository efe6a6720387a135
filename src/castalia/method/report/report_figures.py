"""The report's figures: which ones the data allows, drawn as SVG, with words for each."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from markupsafe import Markup

from castalia.errors import InvalidData
from castalia.evaluate import (
    Calibration,
    Confusion,
    CoverageAccuracy,
    FeatureMaps,
    LearningCurves,
    PrecisionRecall,
    Residuals,
    ScoreComparison,
    to_svg,
)
from castalia.method.report.forecast_figures import forecast_drawings
from castalia.method.report.guarded_figure import Drawing, guarded
from castalia.method.report.run_report import Contender, RunReport
from castalia.method.report.score_formats import finite, metric_label, score
from castalia.models.probabilistic.network_figure import draw_network
from castalia.utils.text import plural

__all__ = [
    "Drawing",
    "comparison",
    "curves",
    "diagnostics",
    "feature_maps",
    "guarded",
    "learnt_graph",
]


def comparison(report: RunReport) -> Drawing | None:
    """Draw the scores of all contenders on the main metric."""
    shown = [c for c in report.contenders if report.metric in c.scores]
    if len(shown) < 2:
        return None

    def draw() -> tuple[Markup, str]:
        display = ScoreComparison.from_scores(
            [c.name for c in shown],
            [c.scores[report.metric] for c in shown],
            [c.interval for c in shown],
            highlight=[c.name for c in shown if _is_highlighted(c, report)],
            metric=report.metric,
        ).plot()
        values = ", ".join(
            f"{n} {score(v, report.metric)}"
            for n, v in zip(display.names, display.values, strict=True)
        )
        alt = f"{metric_label(report.metric)} of each contender, best first: {values}."
        return Markup(to_svg(display.figure_, alt, "scores")), ""

    return guarded("Scores", draw)


def _is_highlighted(contender: Contender, report: RunReport) -> bool:
    """Whether a contender is the recommended one, or the model where none is named."""
    return contender.name == report.recommended if report.recommended else contender.role == "model"


def curves(report: RunReport) -> Drawing | None:
    """Draw the learning curves."""
    if not any("loss" in h for h in report.history):
        return None

    def draw() -> tuple[Markup, str]:
        if not any(finite(h.get("loss")) for h in report.history):
            raise InvalidData("no epoch has a finite loss.")
        display = LearningCurves.from_history(report.history).plot()
        best = display.best_epoch
        kind = "training" if display.val_loss is None else "validation"
        words = f"The {kind} loss was lowest after epoch {best}." if best is not None else ""
        alt = f"Loss over {plural(len(report.history), 'epoch')}. {words}"
        return Markup(to_svg(display.figure_, alt, "curves")), words

    return guarded("Learning curves", draw)


def learnt_graph(report: RunReport) -> Drawing | None:
    """Draw the graph of a Bayesian network, the target filled."""
    if not report.graph:
        return None

    def draw() -> tuple[Markup, str]:
        edges = [f"{p} to {c}" for c, above in report.graph.items() for p in above]
        words = (
            f"{plural(len(edges), 'edge')}: given its parents, a column is independent of all that "
            "comes before it. Directions are those of the factors, not of causes."
        )
        alt = f"Graph of the columns, {'; '.join(edges) or 'without edges'}."
        return Markup(to_svg(draw_network(report.graph, report.target), alt, "graph")), words

    return guarded("Graph", draw)


def diagnostics(report: RunReport) -> list[Drawing]:
    """Draw what the predictions on the test rows allow for this task."""
    if report.forecasts:
        return forecast_drawings(report.forecasts)
    if not report.y_true or report.task not in ("classification", "regression"):
        return []
    if report.task == "regression":
        return _regression(report) if report.y_pred else []
    found = [guarded("Confusion", lambda: _confusion(report))] if report.y_pred else []
    if report.probability:
        found += [
            guarded("Precision and recall", lambda: _precision_recall(report)),
            guarded("Calibration", lambda: _calibration(report)),
            guarded("If it may decline", lambda: _coverage(report)),
        ]
    return found


def feature_maps(report: RunReport) -> list[Drawing]:
    """Draw what the first layers make of an image."""
    return [
        guarded(shown["name"].capitalize(), partial(_maps, i, shown))
        for i, shown in enumerate(report.feature_maps)
    ]


def _maps(number: int, shown: Mapping[str, Any]) -> tuple[Markup, str]:
    image = None if shown.get("image") is None else np.array(shown["image"], dtype=float)
    maps = np.array(shown["maps"], dtype=float)
    display = FeatureMaps(maps, shown["name"], image, int(shown.get("hidden") or 0)).plot()
    alt = f"{plural(len(maps), 'map')} of {shown['name']} for one image."
    return Markup(to_svg(display.figure_, alt, f"maps-{number}")), ""


def _regression(report: RunReport) -> list[Drawing]:
    def draw(kind: str, alt: str, words: str) -> tuple[Markup, str]:
        display = Residuals.from_predictions(report.y_true, report.y_pred)
        display.plot(kind=kind, name=report.target)
        return Markup(to_svg(display.figure_, alt, f"residuals-{kind}")), words

    return [
        guarded(
            "Actual against predicted",
            lambda: draw(
                "actual",
                "Actual values over predicted values, with the line of perfect prediction.",
                "One dot per test row. On the dashed line the prediction is exact.",
            ),
        ),
        guarded(
            "Residuals",
            lambda: draw(
                "residual",
                "Residuals over predicted values, with a line at zero.",
                "A funnel means the error grows with the value; a bend, that something "
                "systematic is missed.",
            ),
        ),
    ]


def _confusion(report: RunReport) -> tuple[Markup, str]:
    display = Confusion.from_predictions(report.y_true, report.y_pred, report.classes).plot()
    words = f"Counts of test {report.unit}s; the shade is the share of the actual class."
    if display.hidden:
        words += (
            f" Shown are the {len(display.labels)} classes confused most often;"
            f" {display.hidden} are left out."
        )
    right, total = int(display.matrix.trace()), int(display.matrix.sum())
    alt = (
        f"Confusion matrix of {len(display.labels)} classes: {right} of {total} {report.unit}s "
        "are right."
    )
    return Markup(to_svg(display.figure_, alt, "confusion")), words


def _precision_recall(report: RunReport) -> tuple[Markup, str]:
    display = PrecisionRecall.from_predictions(report.y_true, report.probability, report.classes)
    words = (
        f"Of the {report.unit}s called a class, how many are; against how many of that class are "
        "found."
    )
    if display.hidden:
        words += f" Shown are the {len(display.curves)} hardest classes."
    values = ", ".join(f"{name} {area:.3f}" for name, (_, _, area) in display.curves.items())
    alt = f"Precision over recall. Average precision: {values}."
    return Markup(to_svg(display.plot().figure_, alt, "precision-recall")), words


def _calibration(report: RunReport) -> tuple[Markup, str]:
    display = Calibration.from_predictions(report.y_true, report.probability, report.classes)
    words = (
        f"On the dashed line a stated confidence is the accuracy one gets. "
        f"The expected calibration error is {display.error:.3f}."
    )
    alt = f"Accuracy over confidence. {words}"
    return Markup(to_svg(display.plot().figure_, alt, "calibration")), words


def _coverage(report: RunReport) -> tuple[Markup, str]:
    display = CoverageAccuracy.from_predictions(report.y_true, report.probability, report.classes)
    half = display.accuracy[(display.coverage >= 0.5).argmax()]
    words = (
        f"Answering only the surer half of the {report.unit}s gives an accuracy of {half:.3f}, "
        f"all {report.unit}s {display.accuracy[-1]:.3f}."
    )
    return Markup(to_svg(display.plot().figure_, words, "coverage")), words
