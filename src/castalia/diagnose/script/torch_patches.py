"""Functions of torch that are wrapped while a script is watched."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

__all__ = ["Patches"]


class Patches:
    """Wrappers put over functions, and taken off again.

    A wrapper that somebody else has wrapped meanwhile cannot be taken off: it must itself pass
    calls through when nobody is watching.
    """

    def __init__(self) -> None:
        self._placed: list[tuple[Any, str, Any, Any]] = []

    def place(self, owner: Any, name: str, wrap: Callable[[Any], Any]) -> None:
        """Put ``wrap(original)`` in the place of an attribute, under its name and documentation."""
        original = getattr(owner, name)
        wrapper = functools.wraps(original)(wrap(original))
        setattr(owner, name, wrapper)
        self._placed.append((owner, name, original, wrapper))

    def remove(self) -> None:
        """Put the originals back, the last first."""
        while self._placed:
            owner, name, original, wrapper = self._placed.pop()
            if getattr(owner, name) is wrapper:
                setattr(owner, name, original)
