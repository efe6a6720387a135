"""Batches: what waits is joined, versions are not mixed, a full queue refuses."""

import asyncio
from types import SimpleNamespace

import numpy as np
import pytest

from castalia.serve.batcher import Batcher, TooBusy


class Sums:
    """Answers with the sum of each row, and remembers how many came together."""

    def __init__(self, factor=1.0):
        self.factor, self.sizes = factor, []

    def join(self, parts):
        return np.concatenate(parts)

    def answer(self, rows):
        self.sizes.append(len(rows))
        return {"sum": self.factor * rows.sum(axis=1)}


def loaded(seconds=0.0, factor=1.0):
    return SimpleNamespace(predictor=Sums(factor), seconds=seconds)


@pytest.mark.parametrize("seconds", [0.0, 1.0], ids=["inline", "in a thread"])
def test_requests_that_wait_are_joined_up_to_the_limit(seconds):
    model = loaded(seconds)

    async def ask():
        batcher = Batcher(most=4)
        asked = [batcher.answer(model, np.full((1, 2), i), 1) for i in range(6)]
        found = await asyncio.gather(*asked)
        await batcher.drain()
        return found

    found = asyncio.run(ask())
    assert [float(each["sum"][0]) for each in found] == [0, 2, 4, 6, 8, 10]
    assert model.predictor.sizes == [4, 2]


def test_two_versions_are_not_mixed_in_a_batch():
    first, second = loaded(), loaded(factor=10.0)

    async def ask():
        batcher = Batcher()
        rows = np.ones((1, 1))
        return await asyncio.gather(*(batcher.answer(m, rows, 1) for m in (first, second)))

    assert [float(each["sum"][0]) for each in asyncio.run(ask())] == [1, 10]


def test_a_full_queue_refuses_and_a_fault_reaches_every_request():
    model = loaded()
    model.predictor.answer = lambda rows: 1 / 0

    async def ask():
        batcher = Batcher(waiting=2)
        with pytest.raises(TooBusy):
            await batcher.answer(model, np.ones((3, 1)), 3)
        asked = [batcher.answer(model, np.ones((1, 1)), 1) for _ in range(2)]
        return await asyncio.gather(*asked, return_exceptions=True)

    assert [type(each) for each in asyncio.run(ask())] == [ZeroDivisionError] * 2
