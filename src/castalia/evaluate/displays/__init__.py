"""Figures in scikit-learn's manner: ``Display.from_…(…).plot(ax=None)``, then ``ax_``, ``figure_``.

matplotlib is imported when something is drawn, and pyplot never.
"""

from castalia.evaluate.displays.calibration import Calibration
from castalia.evaluate.displays.comparison import ScoreComparison
from castalia.evaluate.displays.confusion import Confusion
from castalia.evaluate.displays.coverage import CoverageAccuracy
from castalia.evaluate.displays.curves import LearningCurves
from castalia.evaluate.displays.precision_recall import PrecisionRecall
from castalia.evaluate.displays.residuals import Residuals
from castalia.evaluate.displays.svg import to_svg

__all__ = [
    "Calibration",
    "Confusion",
    "CoverageAccuracy",
    "LearningCurves",
    "PrecisionRecall",
    "Residuals",
    "ScoreComparison",
    "to_svg",
]
