"""Figures in scikit-learn's manner: ``Display.from_…(…).plot(ax=None)``, then ``ax_``, ``figure_``.

matplotlib is imported when something is drawn, and pyplot never.
"""

from castalia.evaluate.displays.activation_histogram import ActivationHistogram
from castalia.evaluate.displays.attention_map import AttentionMap
from castalia.evaluate.displays.bias_variance import BiasVariance
from castalia.evaluate.displays.calibration import Calibration
from castalia.evaluate.displays.capacity_curve import CapacityCurve
from castalia.evaluate.displays.comparison import ScoreComparison
from castalia.evaluate.displays.complexity import EffectiveModelComplexity
from castalia.evaluate.displays.confusion import Confusion
from castalia.evaluate.displays.coverage import CoverageAccuracy
from castalia.evaluate.displays.curves import LearningCurves
from castalia.evaluate.displays.double_descent import DoubleDescent
from castalia.evaluate.displays.feature_maps import FeatureMaps
from castalia.evaluate.displays.gradient_norms import GradientNorms
from castalia.evaluate.displays.learning_curve import LearningCurve
from castalia.evaluate.displays.loss_landscape import LossLandscape
from castalia.evaluate.displays.precision_recall import PrecisionRecall
from castalia.evaluate.displays.residuals import Residuals
from castalia.evaluate.displays.sample_grid import SampleGrid, image_grid
from castalia.evaluate.displays.score_field import ScoreField
from castalia.evaluate.displays.svg import to_svg
from castalia.evaluate.displays.update_ratios import UpdateRatios
from castalia.evaluate.displays.worst import WorstMistakes

__all__ = [
    "ActivationHistogram",
    "AttentionMap",
    "BiasVariance",
    "Calibration",
    "CapacityCurve",
    "Confusion",
    "CoverageAccuracy",
    "DoubleDescent",
    "EffectiveModelComplexity",
    "FeatureMaps",
    "GradientNorms",
    "LearningCurve",
    "LearningCurves",
    "LossLandscape",
    "PrecisionRecall",
    "Residuals",
    "SampleGrid",
    "ScoreComparison",
    "ScoreField",
    "UpdateRatios",
    "WorstMistakes",
    "image_grid",
    "to_svg",
]
