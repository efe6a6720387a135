"""A training script watched without a change of its lines."""

from castalia.diagnose.script.script_session import Session

__all__ = ["Session"]
