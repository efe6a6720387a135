"""The estimator contract: base classes, tasks, parameters, saving and loading."""

import castalia.base.saved_records  # noqa: F401  (registers what saved models may hold)
from castalia.base.detector import Detector
from castalia.base.direct import DirectEstimator
from castalia.base.estimator import Estimator
from castalia.base.params import Constraint, Interval, OneOf, RandomState, Sizes, check_parameters
from castalia.base.segmenting import Segmenter
from castalia.base.store import load, save
from castalia.base.tasks import Classifier, Regressor, Target
from castalia.base.warm_start import Start, Trained

__all__ = [
    "Classifier",
    "Constraint",
    "Detector",
    "DirectEstimator",
    "Estimator",
    "Interval",
    "OneOf",
    "RandomState",
    "Regressor",
    "Segmenter",
    "Sizes",
    "Start",
    "Target",
    "Trained",
    "check_parameters",
    "load",
    "save",
]
