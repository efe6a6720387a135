"""The thresholds of the doctor, each with what set it."""

from castalia.diagnose.calibration.limits import LIMITS, Limit, limit

__all__ = ["LIMITS", "Limit", "limit"]
