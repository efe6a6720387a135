"""Measures with their uncertainty, figures, and the worst mistakes.

scikit-learn's own measures are found here too: ``castalia.evaluate.accuracy_score``.
"""

from typing import Any

from castalia.evaluate.displays import (
    Calibration,
    Confusion,
    CoverageAccuracy,
    LearningCurves,
    PrecisionRecall,
    Residuals,
    ScoreComparison,
    to_svg,
)
from castalia.evaluate.intervals import Interval, bootstrap, interval, paired_difference
from castalia.evaluate.metrics import (
    METRICS,
    Metric,
    calibration_error,
    coverage_accuracy,
    higher_is_better,
    metric,
    primary_metric,
    scores,
)
from castalia.evaluate.mistakes import Mistake, worst_mistakes

__all__ = [
    "METRICS",
    "Calibration",
    "Confusion",
    "CoverageAccuracy",
    "Interval",
    "LearningCurves",
    "Metric",
    "Mistake",
    "PrecisionRecall",
    "Residuals",
    "ScoreComparison",
    "bootstrap",
    "calibration_error",
    "coverage_accuracy",
    "higher_is_better",
    "interval",
    "metric",
    "paired_difference",
    "primary_metric",
    "scores",
    "to_svg",
    "worst_mistakes",
]


def __getattr__(name: str) -> Any:
    if not name.startswith("_"):
        from sklearn import metrics

        if name in metrics.__all__:
            return getattr(metrics, name)
    raise AttributeError(f"module 'castalia.evaluate' has no attribute {name!r}")


def __dir__() -> list[str]:
    from sklearn import metrics

    return sorted({*globals(), *metrics.__all__})
