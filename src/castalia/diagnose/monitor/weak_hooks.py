"""What the doctor leaves in torch, the module and the optimizer while watching."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable
from typing import Any, Protocol

from torch.compiler import is_compiling

__all__ = ["Ear", "Hearer", "detach"]


class Hearer(Protocol):
    """Somebody with ears."""

    closed: bool

    def trouble(self, where: str, error: Exception) -> None:
        """Take note of a mistake made while listening."""


class Ear:
    """Tells a hearer of an event, and never lets a mistake of the hearer out into the training.

    The hearer is held weakly: forgotten without being closed, it hears no more. A copy of a watched
    module, in memory or in a file, has a deaf ear: it neither drags the hearer along nor needs
    this library to be read. Compilers trace nothing.

    Parameters
    ----------
    hearer
        Who wants to know.
    event
        Method of its class that is called.
    """

    __slots__ = ("_event", "_hearer")

    def __init__(self, hearer: Hearer, event: Callable[..., Any]) -> None:
        self._hearer, self._event = weakref.ref(hearer), event

    def __call__(self, *args: Any) -> Any:
        """Tell the hearer."""
        if is_compiling():
            return None
        hearer = self._hearer()
        if hearer is None or hearer.closed:
            return None
        try:
            return self._event(hearer, *args)
        except Exception as error:  # whatever it is, the training must go on
            hearer.trouble(self._event.__name__, error)
            return None

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave a function that does nothing with whatever it is given."""
        return getattr, (contextlib.nullcontext(), "__exit__")


def detach(*handles: list[Any]) -> None:
    """Remove everything in these lists."""
    for several in handles:
        while several:
            several.pop().remove()
