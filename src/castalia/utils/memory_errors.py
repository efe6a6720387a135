"""Recognising that memory ran out: libraries say it in different ways."""

from __future__ import annotations

__all__ = ["is_out_of_memory"]

_WORDS = ("can't allocate memory", "not enough memory", "out of memory")


def is_out_of_memory(error: BaseException) -> bool:
    """Say whether an error means that memory ran out, on the host or on a device.

    Examples
    --------
    >>> is_out_of_memory(MemoryError()), is_out_of_memory(RuntimeError("other"))
    (True, False)
    """
    if isinstance(error, MemoryError):
        return True
    said = str(error).lower()
    return isinstance(error, RuntimeError) and any(words in said for words in _WORDS)
