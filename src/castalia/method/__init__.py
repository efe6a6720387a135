"""The practical method on tables and images: baselines first, the network, a verdict."""

from castalia.method.baseline_guide import Baseline, recommend_baseline
from castalia.method.evaluation import Evaluation, evaluate
from castalia.method.fit_plan import FitPlan
from castalia.method.fit_result import FitResult
from castalia.method.flow import fit, run
from castalia.method.label_requests import ask
from castalia.method.narrator import Narrator
from castalia.method.next_step import NextStep, next_step
from castalia.method.predictions import Predictions, predict
from castalia.method.settings_search import tune
from castalia.method.tune_plan import TunePlan, TuneResult

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
    "ask",
    "evaluate",
    "fit",
    "next_step",
    "predict",
    "recommend_baseline",
    "run",
    "tune",
]
