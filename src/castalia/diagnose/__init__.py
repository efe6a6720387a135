"""Finding out what is wrong with a training, before it and while it runs."""

from castalia.diagnose.diagnosis import Diagnosis
from castalia.diagnose.estimators import Cure, Watcher, cure, diagnose
from castalia.diagnose.findings import Evidence, Finding, Remedy, finding
from castalia.diagnose.preflight import Check, preflight
from castalia.diagnose.vocabulary import NAMES
from castalia.diagnose.watching import Doctor, watch

__all__ = [
    "NAMES",
    "Check",
    "Cure",
    "Diagnosis",
    "Doctor",
    "Evidence",
    "Finding",
    "Remedy",
    "Watcher",
    "cure",
    "diagnose",
    "finding",
    "preflight",
    "watch",
]
