"""The order in which a training sees its rows."""

import numpy as np
import pytest
import torch

from castalia.data import batches
from castalia.data.batches import DiskRows, Samples, TensorRows


class Matrix:
    """A matrix that is read by spans, as one on disk is, and notes how long they are."""

    def __init__(self, array):
        self.array, self.longest = array, 0

    def __len__(self):
        return len(self.array)

    def read(self, start, stop):
        self.longest = max(self.longest, stop - start)
        return self.array[start:stop]


@pytest.fixture(autouse=True)
def small_windows(monkeypatch):
    monkeypatch.setattr(batches, "BLOCK", 8)
    monkeypatch.setattr(batches, "WINDOW", 2)
    monkeypatch.setattr(batches, "GAP", 3)


def walk(samples, batch_size, epoch=0):
    return [
        window.batch(index)
        for window, order in samples.windows(1, epoch)
        for index in order.split(batch_size)
    ]


@pytest.mark.parametrize("n", [5, 16, 17, 31, 32, 40, 41, 63])
def test_every_epoch_has_the_announced_number_of_batches_and_every_row_once(n):
    samples = Samples(TensorRows(torch.arange(float(n))[:, None]), torch.arange(n))
    for epoch in range(4):
        found = walk(samples, 5, epoch)
        assert len(found) == samples.n_batches(5)
        assert sorted(torch.cat([batch.y for batch in found]).tolist()) == list(range(n))


def test_rows_on_disk_come_in_the_same_order_by_short_reads():
    array = np.arange(200, dtype=np.float32).reshape(100, 2)
    kept = np.flatnonzero(np.arange(100) % 10)
    matrix = Matrix(array)
    held = Samples(TensorRows(torch.from_numpy(array)), torch.arange(100)).subset(kept)
    disk = Samples(DiskRows(matrix), torch.arange(100)).subset(kept)
    for one, other in zip(walk(held, 7), walk(disk, 7), strict=True):
        assert torch.equal(one.x, other.x)
        assert torch.equal(one.y, other.y)
    assert matrix.longest <= 10  # a block of 8 rows and the gaps inside it


def test_without_a_seed_the_rows_keep_their_order():
    samples = Samples(TensorRows(torch.arange(20.0)[:, None]))
    found = torch.cat([order for _, order in samples.windows(None, 0)])
    assert found.tolist() == list(range(20))
