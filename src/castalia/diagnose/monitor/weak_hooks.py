"""What the doctor leaves in torch, the module and the optimizer while watching."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from typing import Any, Protocol

from torch.compiler import is_compiling

__all__ = ["WeakHook", "Receiver", "detach", "guarded_call"]

LOGGER = logging.getLogger("castalia.diagnose")


class Receiver(Protocol):
    """What a weak hook calls."""

    closed: bool

    def trouble(self, where: str, error: Exception) -> None:
        """Record an error raised by one of its own methods."""


class WeakHook:
    """Calls a receiver on an event, and never lets an error of the receiver into the training.

    The receiver is held weakly: once forgotten, closed or not, it is called no more. Compilers
    trace nothing.

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


def detach(*handles: list[Any]) -> None:
    """Remove everything in these lists."""
    for several in handles:
        while several:
            several.pop().remove()


def guarded_call(listener: Any, act: Callable[..., Any], *args: Any) -> Any:
    """Call a listener; one that raises is logged and removed, and the training goes on."""
    try:
        return act(*args)
    except Exception:
        LOGGER.warning("A listener to the training raised and is called no more.", exc_info=True)
        listener.remove()
        return None
