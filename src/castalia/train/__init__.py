"""The one loop, its settings, callbacks, checkpoints and runs.

Names are loaded when first used: runs are listed without torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from castalia.train.callbacks import EVENTS as EVENTS
    from castalia.train.callbacks import Callback as Callback
    from castalia.train.gradient_norm_callback import GradientNorms as GradientNorms
    from castalia.train.loop import train as train
    from castalia.train.parameter_norms import ParameterNorms as ParameterNorms
    from castalia.train.precision import Precision as Precision
    from castalia.train.precision import resolve_precision as resolve_precision
    from castalia.train.recorder import Recorder as Recorder
    from castalia.train.runs import Run as Run
    from castalia.train.runs import RunStore as RunStore
    from castalia.train.script_log import log as log
    from castalia.train.state import TrainState as TrainState
    from castalia.train.step_cost import evaluation_rows as evaluation_rows
    from castalia.train.step_cost import step_work as step_work
    from castalia.train.strategy import build_strategy as build_strategy
    from castalia.train.tracker_callback import TrackerCallback as TrackerCallback
    from castalia.train.training import Training as Training
    from castalia.train.training_check import check_training as check_training

_HOMES = {
    "callbacks": "EVENTS Callback",
    "gradient_norm_callback": "GradientNorms",
    "loop": "train",
    "parameter_norms": "ParameterNorms",
    "precision": "Precision resolve_precision",
    "recorder": "Recorder",
    "runs": "Run RunStore",
    "script_log": "log",
    "state": "TrainState",
    "step_cost": "evaluation_rows step_work",
    "strategy": "build_strategy",
    "tracker_callback": "TrackerCallback",
    "training": "Training",
    "training_check": "check_training",
}
_NAMES = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = [*_NAMES]


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'castalia.train' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"castalia.train.{_NAMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
