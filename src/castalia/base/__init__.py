"""The estimator contract: base classes, tasks, parameters, saving and loading."""

import castalia.base.saved_records  # noqa: F401  (registers what saved models may hold)
from castalia.base.direct import DirectEstimator
from castalia.base.estimator import Estimator
from castalia.base.params import Constraint, Interval, OneOf, RandomState, Sizes, check_parameters
from castalia.base.store import load, save
from castalia.base.tasks import Classifier, Regressor, Target
from castalia.base.transferable import Transferable
from castalia.base.warm_start import Start, Trained
from castalia.utils.moved_names import moved_names

__all__ = [
    "Classifier",
    "Constraint",
    "DirectEstimator",
    "Estimator",
    "Interval",
    "OneOf",
    "RandomState",
    "Regressor",
    "Sizes",
    "Start",
    "Target",
    "Trained",
    "Transferable",
    "check_parameters",
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
