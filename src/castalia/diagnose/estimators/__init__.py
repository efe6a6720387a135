"""The doctor for our own estimators: watching their loop, judging them, repairing them."""

from castalia.diagnose.estimators.diagnosing import diagnose
from castalia.diagnose.estimators.told import diagnosis_of
from castalia.diagnose.estimators.watcher import DIAGNOSIS, Watcher

__all__ = ["DIAGNOSIS", "Watcher", "diagnose", "diagnosis_of"]
