"""Every threshold of the doctor in one table: its name, its value and where it comes from.

Rules and probes read thresholds by name; ``tests/diagnose/thresholds`` fails where one compares
with a number of its own. Counts of rows or steps that a statistic needs stand beside the statistic.
"""

from castalia.diagnose.thresholds.case_limits import CASE
from castalia.diagnose.thresholds.data_limits import DATA
from castalia.diagnose.thresholds.examination_limits import EXAMINATION
from castalia.diagnose.thresholds.fit_limits import FIT
from castalia.diagnose.thresholds.limit_record import ORIGINS, Limit
from castalia.diagnose.thresholds.step_limits import STEPS

__all__ = ["LIMITS", "ORIGINS", "Limit", "limit"]

LIMITS: dict[str, Limit] = {**CASE, **STEPS, **DATA, **FIT, **EXAMINATION}


def limit(name: str) -> float:
    """Return a threshold by name."""
    return LIMITS[name].value
