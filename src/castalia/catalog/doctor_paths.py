"""Where the doctor is found: floors below it know it by this name only."""

__all__ = ["DIAGNOSIS", "WATCHER"]

WATCHER = "castalia.diagnose.estimators:Watcher"
DIAGNOSIS = "castalia.diagnose.estimators:diagnosis_of"
