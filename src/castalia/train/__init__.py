"""The one loop, its settings, callbacks, checkpoints and runs."""

from castalia.train.callbacks import EVENTS, Callback
from castalia.train.gradient_norm_callback import GradientNorms
from castalia.train.loop import train
from castalia.train.parameter_norms import ParameterNorms
from castalia.train.precision import Precision, resolve_precision
from castalia.train.recorder import Recorder
from castalia.train.runs import Run, RunStore
from castalia.train.state import TrainState
from castalia.train.step_cost import evaluation_rows, step_work
from castalia.train.strategy import build_strategy
from castalia.train.training import Training
from castalia.train.training_check import check_training

__all__ = [
    "EVENTS",
    "Callback",
    "GradientNorms",
    "ParameterNorms",
    "Precision",
    "Recorder",
    "Run",
    "RunStore",
    "TrainState",
    "Training",
    "build_strategy",
    "check_training",
    "resolve_precision",
    "evaluation_rows",
    "step_work",
    "train",
]
