"""Measures with their uncertainty, figures, and the worst mistakes.

scikit-learn's own measures are found here too: ``castalia.evaluate.accuracy_score``.
"""

from typing import Any

from castalia.evaluate.answers import answer_f1, exact_match, task_scores
from castalia.evaluate.chrf_score import chrf
from castalia.evaluate.decisions import (
    expected_cost,
    f_beta,
    optimal_threshold,
    precision_recall,
)
from castalia.evaluate.displays import (
    ActivationHistogram,
    AttentionMap,
    BiasVariance,
    Calibration,
    CapacityCurve,
    Confusion,
    CoverageAccuracy,
    DoubleDescent,
    EffectiveModelComplexity,
    FeatureMaps,
    GradientNorms,
    LearningCurve,
    LearningCurves,
    LossLandscape,
    PrecisionRecall,
    Residuals,
    SampleGrid,
    ScoreComparison,
    ScoreField,
    UpdateRatios,
    WorstMistakes,
    to_svg,
)
from castalia.evaluate.explanations import (
    Attributions,
    GradCAM,
    PartialDependence,
    PermutationImportance,
    integrated_gradients,
    shapley_values,
)
from castalia.evaluate.intersection_over_union import iou
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
from castalia.evaluate.model_complexity import Complexity, complexity
from castalia.evaluate.retrieval_metrics import mean_reciprocal_rank, ndcg, recall_at
from castalia.evaluate.rouge_scores import Rouge, rouge
from castalia.evaluate.sample_fidelity import SampleFidelity, sample_fidelity, sample_scores
from castalia.evaluate.segmentation import (
    boundary_accuracy,
    class_iou,
    mean_iou,
    pixel_accuracy,
)
from castalia.evaluate.selection import (
    aic,
    bic,
    gaussian_log_likelihood,
    loo,
    runs_test,
    structural_risk,
)
from castalia.evaluate.translation import Bleu, bleu
from castalia.evaluate.word_perplexity import perplexity
from castalia.models.vision.average_precision import (
    DetectionScores,
    detection_scores,
    mean_average_precision,
)

__all__ = [
    "SampleFidelity",
    "sample_fidelity",
    "sample_scores",
    "METRICS",
    "ActivationHistogram",
    "AttentionMap",
    "Attributions",
    "BiasVariance",
    "Bleu",
    "Calibration",
    "CapacityCurve",
    "Complexity",
    "Confusion",
    "CoverageAccuracy",
    "DetectionScores",
    "DoubleDescent",
    "EffectiveModelComplexity",
    "FeatureMaps",
    "GradCAM",
    "GradientNorms",
    "Interval",
    "LearningCurve",
    "LearningCurves",
    "LossLandscape",
    "Metric",
    "Mistake",
    "PartialDependence",
    "PermutationImportance",
    "PrecisionRecall",
    "Residuals",
    "SampleGrid",
    "Rouge",
    "ScoreComparison",
    "ScoreField",
    "UpdateRatios",
    "WorstMistakes",
    "aic",
    "answer_f1",
    "bic",
    "bleu",
    "bootstrap",
    "boundary_accuracy",
    "calibration_error",
    "chrf",
    "class_iou",
    "complexity",
    "coverage_accuracy",
    "detection_scores",
    "exact_match",
    "expected_cost",
    "f_beta",
    "gaussian_log_likelihood",
    "higher_is_better",
    "integrated_gradients",
    "interval",
    "iou",
    "loo",
    "mean_iou",
    "mean_average_precision",
    "mean_reciprocal_rank",
    "metric",
    "ndcg",
    "optimal_threshold",
    "paired_difference",
    "pixel_accuracy",
    "perplexity",
    "precision_recall",
    "primary_metric",
    "recall_at",
    "rouge",
    "runs_test",
    "scores",
    "shapley_values",
    "structural_risk",
    "task_scores",
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
