"""Finding out what is wrong with a training: before it, while it runs, and after.

Names are loaded when first used: a watched script imports no more than watching needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from castalia.diagnose.checking import Check, preflight
    from castalia.diagnose.diagnosis import Diagnosis
    from castalia.diagnose.estimators import Cure, Watcher, cure, diagnose
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
    from castalia.diagnose.vocabulary import NAMES
    from castalia.diagnose.watching import Doctor, watch

_HOMES = {
    "diagnosis": ("Diagnosis",),
    "estimators": ("Cure", "Watcher", "cure", "diagnose"),
    "examination": (
        "Outcome",
        "baseline_test",
        "examine",
        "lr_range",
        "more_data_test",
        "shuffle_test",
        "tiny_fit",
    ),
    "findings": ("Evidence", "Finding", "Remedy", "finding"),
    "checking": ("Check", "preflight"),
    "vocabulary": ("NAMES",),
    "watching": ("Doctor", "watch"),
}

__all__ = [
    "NAMES",
    "Check",
    "Cure",
    "Diagnosis",
    "Doctor",
    "Evidence",
    "Finding",
    "Outcome",
    "Remedy",
    "Watcher",
    "baseline_test",
    "cure",
    "diagnose",
    "examine",
    "finding",
    "lr_range",
    "more_data_test",
    "preflight",
    "shuffle_test",
    "tiny_fit",
    "watch",
]


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"castalia.diagnose.{home}"), name)
    raise AttributeError(f"module 'castalia.diagnose' has no attribute {name!r}")
