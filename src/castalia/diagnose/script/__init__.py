"""Watching a training script in which no line was changed."""

from castalia.diagnose.script.script_session import Session

__all__ = ["Session"]
