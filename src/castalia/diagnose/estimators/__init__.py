"""The doctor for our own estimators: a watcher of their loop, their diagnosis and its remedies."""

from castalia.diagnose.estimators.estimator_diagnosis import diagnose
from castalia.diagnose.estimators.kept_diagnosis import diagnosis_of, stored_diagnosis
from castalia.diagnose.estimators.remedy_trials import Cure, Remedied, cure
from castalia.diagnose.estimators.watcher import DIAGNOSIS, Watcher

__all__ = [
    "DIAGNOSIS",
    "Cure",
    "Remedied",
    "Watcher",
    "cure",
    "diagnose",
    "diagnosis_of",
    "stored_diagnosis",
]
