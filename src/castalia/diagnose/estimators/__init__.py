"""The doctor for our own estimators: watching their loop, judging them, repairing them."""

from castalia.diagnose.estimators.curing import Cure, Remedied, cure
from castalia.diagnose.estimators.diagnosing import diagnose
from castalia.diagnose.estimators.told import diagnosis_of, stored_diagnosis
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
