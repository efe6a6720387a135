"""The estimator contract: base classes, tasks, parameters, saving and loading."""

import castalia.base.saved_records  # noqa: F401  (registers what saved models may hold)
from castalia.base.classifier import Classifier
from castalia.base.direct import DirectEstimator
from castalia.base.estimator import Estimator
from castalia.base.params import (
    Constraint,
    Interval,
    OneOf,
    RandomState,
    Sizes,
    check_parameters,
    fields_for,
)
from castalia.base.recipe import Amounts, Recipe
from castalia.base.regressor import Regressor
from castalia.base.store import load, save
from castalia.base.targets import NoTarget, Target, TargetCodec
from castalia.base.transferable import Transferable
from castalia.base.warm_start import Start, Trained
from castalia.utils.moved_names import moved_names

__all__ = [
    "Amounts",
    "Classifier",
    "Constraint",
    "DirectEstimator",
    "Estimator",
    "Interval",
    "NoTarget",
    "OneOf",
    "RandomState",
    "Recipe",
    "Regressor",
    "Sizes",
    "Start",
    "Target",
    "TargetCodec",
    "Trained",
    "Transferable",
    "check_parameters",
    "fields_for",
    "load",
    "save",
]

__getattr__ = moved_names(
    __name__,
    {
        "Detector": "castalia.models.vision.detector_task",
        "Segmenter": "castalia.models.vision.segmenter_task",
    },
)
