"""Requests that arrive together are answered together."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Batcher", "TooBusy"]

INLINE = 0.002  # seconds of a full batch up to which no thread is worth its switch


class TooBusy(Exception):  # noqa: N818 - an answer to a client
    """More rows wait than the server may keep."""


class Waiting(NamedTuple):
    """Rows of one request."""

    part: Any
    rows: int
    found: asyncio.Future[dict[str, np.ndarray]]


class Batcher:
    """Joins the rows of requests that wait, without making the first of them wait.

    A batch is what has arrived while the one before was computed, so an idle server answers at
    once and a busy one in large batches.

    Parameters
    ----------
    most
        Rows of a batch.
    waiting
        Rows that may wait; more are refused.
    seen
        Called with the rows of every batch.
    """

    def __init__(
        self, most: int = 256, waiting: int = 16_384, seen: Callable[[int], None] | None = None
    ) -> None:
        self.most, self.limit, self.seen = most, waiting, seen
        self.rows = 0  # that wait
        self._queue: deque[Waiting] = deque()
        self._pool = ThreadPoolExecutor(1, "castalia-serve")
        self._task: asyncio.Task[None] | None = None

    async def answer(
        self, loaded: Any, part: Any, rows: int, seconds: float = 30.0
    ) -> dict[str, np.ndarray]:
        """Return the answers to parsed rows, computed with those of others, or TimeoutError."""
        if self.rows + rows > self.limit:
            raise TooBusy
        loop = asyncio.get_running_loop()
        found = loop.create_future()
        late = loop.call_later(seconds, _give_up, found)  # a tenth of what wait_for costs
        self.rows += rows
        self._queue.append(Waiting((loaded, part), rows, found))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())
        try:
            result: dict[str, np.ndarray] = await found
        finally:
            late.cancel()
        return result

    async def _work(self) -> None:
        """Answer batch after batch until nothing waits."""
        while self._queue:
            await asyncio.sleep(0)  # requests that were read together arrive together
            batch = self._next()
            loaded = batch[0].part[0]
            await self._compute(loaded, batch)

    def _next(self) -> list[Waiting]:
        """Take requests of one version of the model, up to so many rows."""
        batch = [self._queue.popleft()]
        rows, loaded = batch[0].rows, batch[0].part[0]
        while self._queue and self._queue[0].part[0] is loaded:
            if rows + self._queue[0].rows > self.most:
                break
            batch.append(self._queue.popleft())
            rows += batch[-1].rows
        self.rows -= rows
        return batch

    async def _compute(self, loaded: Any, batch: list[Waiting]) -> None:
        try:
            joined = loaded.predictor.join([each.part[1] for each in batch])
            if isinstance(joined, tuple):  # columns of a table, and what the graph takes
                loaded.drift.add(joined[0])
            if loaded.seconds < INLINE:
                found = loaded.predictor.answer(joined)
            else:
                loop = asyncio.get_running_loop()
                found = await loop.run_in_executor(self._pool, loaded.predictor.answer, joined)
        except Exception as error:
            for each in batch:
                with suppress(asyncio.InvalidStateError):  # the client has gone
                    each.found.set_exception(error)
            return
        if self.seen is not None:
            self.seen(sum(each.rows for each in batch))
        start = 0
        for each in batch:
            part = {name: v[start : start + each.rows] for name, v in found.items()}
            start += each.rows
            with suppress(asyncio.InvalidStateError):
                each.found.set_result(part)

    async def drain(self) -> None:
        """Wait until nothing waits."""
        while self._task is not None and not self._task.done():
            await asyncio.sleep(0.01)
        self._pool.shutdown(wait=True)


def _give_up(found: asyncio.Future[Any]) -> None:
    if not found.done():
        found.set_exception(TimeoutError())
