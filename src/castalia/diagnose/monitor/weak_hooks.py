"""What the doctor leaves in torch, the module and the optimizer while watching."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable
from typing import Any, Protocol

from torch.compiler import is_compiling

__all__ = ["WeakHook", "Receiver", "detach"]


class Receiver(Protocol):
    """What a weak hook calls."""

    closed: bool

    def trouble(self, where: str, error: Exception) -> None:
        """Record an error raised by one of its own methods."""


class WeakHook:
    """Calls a receiver on an event, and never lets an error of the receiver into the training.

    The receiver is held weakly: once forgotten, closed or not, it is called no more. A copy of a
    watched module, in memory or in a file, has a hook that does nothing: it neither takes the
    receiver along nor needs this library to be read. Compilers trace nothing.

    Parameters
    ----------
    receiver
        Whose method is called.
    event
        Method of its class.
    """

    __slots__ = ("_event", "_receiver")

    def __init__(self, receiver: Receiver, event: Callable[..., Any]) -> None:
        self._receiver, self._event = weakref.ref(receiver), event

    def __call__(self, *args: Any) -> Any:
        """Call the receiver."""
        if is_compiling():
            return None
        receiver = self._receiver()
        if receiver is None or receiver.closed:
            return None
        try:
            return self._event(receiver, *args)
        except Exception as error:  # whatever it is, the training must go on
            receiver.trouble(self._event.__name__, error)
            return None

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave a function that does nothing with whatever it is given."""
        return getattr, (contextlib.nullcontext(), "__exit__")


def detach(*handles: list[Any]) -> None:
    """Remove everything in these lists."""
    for several in handles:
        while several:
            several.pop().remove()
