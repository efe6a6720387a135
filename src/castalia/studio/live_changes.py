"""What changes in a folder of runs while somebody watches, as server-sent events."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from typing import Any

from castalia.studio.run_index import RunIndex, RunRow

__all__ = ["change_events", "states"]

_BEAT = 15  # quiet rounds after which a comment keeps the connection open


def states(index: RunIndex) -> dict[str, Any]:
    """Return a mark of every run that may still change: status, last word, size of its curves."""
    return {row.name: _state(row) for row in index.rows()}


def _state(row: RunRow) -> tuple[Any, ...]:
    if row.status != "running":
        return (row.status, row.updated)
    return (row.current, row.updated, *(_stamp(row, end) for end in ("", "-wal")))


def _stamp(row: RunRow, end: str) -> float:
    """Return when the database of the trainings inside a run was last written."""
    try:
        return os.stat(row.folder / f"castalia.db{end}").st_mtime
    except OSError:
        return 0.0


async def change_events(
    index: RunIndex, seconds: float, left: Callable[[], Any]
) -> AsyncIterator[str]:
    """Yield the names of runs that are new, changed or gone, as they are.

    Parameters
    ----------
    index
        The runs.
    seconds
        Between two readings.
    left
        Awaited before each: whether the page was closed.
    """
    before = await asyncio.to_thread(states, index)
    yield "retry: 2000\n\n"
    quiet = 0
    while not await left():
        await asyncio.sleep(seconds)
        now = await asyncio.to_thread(states, index)
        names = [name for name in now if now[name] != before.get(name)]
        names += [name for name in before if name not in now]
        before, quiet = now, 0 if names else quiet + 1
        if names:
            yield f"event: runs\ndata: {json.dumps(names[:200])}\n\n"
        elif quiet % _BEAT == 0:
            yield ": still here\n\n"
