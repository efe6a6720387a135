"""What is wrong with a training: found before it, while it runs, and after.

Names are loaded when first used: a watched script imports no more than watching needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    from castalia.diagnose.finding_codes import NAMES
    from castalia.diagnose.finding_record import Evidence, Finding, Remedy, finding
    from castalia.diagnose.monitor import Doctor, watch
    from castalia.diagnose.preflight_checks import Check, preflight

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
    "finding_record": ("Evidence", "Finding", "Remedy", "finding"),
    "preflight_checks": ("Check", "preflight"),
    "finding_codes": ("NAMES",),
    "monitor": ("Doctor", "watch"),
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
