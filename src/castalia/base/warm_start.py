"""Parameters of models that begin with the weights of another."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from castalia.base.params import Constraint, Interval

__all__ = ["Start", "Trained"]


class Start(Constraint):
    """Where weights may come from: something fitted, a path, or None.

    Parameters
    ----------
    what
        The models and paths that will do, in words.
    """

    def __init__(self, what: str) -> None:
        self.what = what

    def rule(self) -> str:
        """Say so."""
        return f"{self.what}, or None"

    def holds(self, value: Any) -> bool:
        """Whether there is something at the path, or something that can be fitted."""
        if isinstance(value, str | os.PathLike):
            return Path(value).exists()
        return value is None or (hasattr(value, "fit") and not isinstance(value, type))


class Trained(Constraint):
    """How much of a network that has a start is trained."""

    def rule(self) -> str:
        """Say so."""
        return "'all', 'head' or a whole number of at least 1"

    def holds(self, value: Any) -> bool:
        """Whether it is a word or a number of parts."""
        return value in ("all", "head") or Interval(1, whole=True).holds(value)
