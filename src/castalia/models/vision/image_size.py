"""The constraint on an image's size."""

from typing import Any

from castalia.base import Constraint, Interval

__all__ = ["ImageSize"]


class ImageSize(Constraint):
    """One positive whole number, a pair (height, width) of them, or None."""

    def rule(self) -> str:
        """Say so."""
        return "a positive whole number, a pair of them (height, width), or None"

    def holds(self, value: Any) -> bool:
        """Whether it is a size."""
        whole = Interval(1, whole=True)
        if isinstance(value, tuple | list):
            return len(value) == 2 and all(whole.holds(n) for n in value)
        return value is None or whole.holds(value)
