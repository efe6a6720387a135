"""The practical method on tables and images: baselines first, the network, a verdict."""

from castalia.method.baseline_guide import Baseline, recommend_baseline
from castalia.method.evaluating import Evaluation, evaluate
from castalia.method.fitting import fit, run
from castalia.method.narrator import Narrator
from castalia.method.next_step import NextStep, next_step
from castalia.method.plan import FitPlan
from castalia.method.predicting import Predictions, predict
from castalia.method.result import FitResult
from castalia.method.tuning import TunePlan, TuneResult, tune

__all__ = [
    "Baseline",
    "Evaluation",
    "FitPlan",
    "FitResult",
    "Narrator",
    "NextStep",
    "Predictions",
    "TunePlan",
    "TuneResult",
    "evaluate",
    "fit",
    "next_step",
    "predict",
    "recommend_baseline",
    "run",
    "tune",
]
