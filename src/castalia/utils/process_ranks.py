"""Which of the processes that ``torchrun`` started this one is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["alone", "is_first", "rank_and_world"]


def rank_and_world() -> tuple[int, int]:
    """Return the number of this process, and how many there are.

    >>> rank_and_world()
    (0, 1)
    """
    world = int(os.environ.get("WORLD_SIZE", "1"))
    return (int(os.environ.get("RANK", "0")), world) if world > 1 else (0, 1)


def is_first() -> bool:
    """Whether this process is the one that prints and writes."""
    return rank_and_world()[0] == 0


@contextmanager
def alone() -> Iterator[None]:
    """Let this process work by itself: trainings inside wait for no other process.

    The variable of ``torchrun`` says so, which processes that are started inside inherit.
    """
    before = os.environ.get("WORLD_SIZE")
    os.environ["WORLD_SIZE"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["WORLD_SIZE"]
        else:
            os.environ["WORLD_SIZE"] = before
