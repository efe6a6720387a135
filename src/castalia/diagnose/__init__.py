"""Finding out what is wrong with a training, before it and while it runs."""

from castalia.diagnose.diagnosis import Diagnosis
from castalia.diagnose.examination import (
    Outcome,
    baseline_test,
    examine,
    lr_range,
    more_data_test,
    shuffle_test,
    tiny_fit,
)
from castalia.diagnose.findings import Evidence, Finding, Remedy, finding
from castalia.diagnose.preflight import Check, preflight
from castalia.diagnose.vocabulary import NAMES
from castalia.diagnose.watching import Doctor, watch

__all__ = [
    "NAMES",
    "Check",
    "Diagnosis",
    "Doctor",
    "Evidence",
    "Finding",
    "Outcome",
    "Remedy",
    "baseline_test",
    "examine",
    "finding",
    "lr_range",
    "more_data_test",
    "preflight",
    "shuffle_test",
    "tiny_fit",
    "watch",
]
