"""Whether a shortcut still does what it is a shortcut for."""

from __future__ import annotations

from typing import Any

__all__ = ["is_current"]


def is_current(owner: Any, shortcut: str, *originals: str) -> bool:
    """Whether no subclass or instance changed an original without changing its shortcut too.

    Examples
    --------
    >>> class Square:
    ...     def area(self): ...
    ...     def quick_area(self): ...
    >>> class Rectangle(Square):
    ...     def area(self): ...
    >>> is_current(Square(), "quick_area", "area"), is_current(Rectangle(), "quick_area", "area")
    (True, False)
    """
    order = [vars(owner), *(vars(cls) for cls in type(owner).__mro__)]

    def place(name: str) -> int:
        return next((i for i, names in enumerate(order) if name in names), len(order))

    return all(place(shortcut) <= place(name) for name in originals)
