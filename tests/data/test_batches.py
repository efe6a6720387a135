"""The order in which a training sees its rows."""

import numpy as np
import pytest
import torch

from castalia.data import batches
from castalia.data.batches import DiskRows, Samples, TensorRows
from castalia.data.text import TokenRows
from castalia.protocols import Rows


class Matrix:
    """A matrix that is read by spans, as one on disk is, and notes how long they are."""

    def __init__(self, array):
        self.array, self.shape, self.longest = array, array.shape, 0

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


def test_inputs_and_targets_may_be_trees_and_lengths_reach_the_batch():
    lengths = torch.tensor([3, 1, 2, 1])
    x = TensorRows(torch.arange(12).reshape(4, 3), lengths)
    y = {"label": torch.arange(4), "box": (torch.arange(8).reshape(4, 2),)}
    batch = Samples(x, y).batch(torch.tensor([1, 2]))
    assert batch.x.tolist() == [[3, 4], [6, 7]]
    assert batch.lengths.tolist() == [1, 2]
    assert batch.y["label"].tolist() == [1, 2]
    assert batch.y["box"][0].tolist() == [[2, 3], [4, 5]]


def test_padded_targets_are_cut_to_the_longest_of_a_batch():
    y = TensorRows(torch.arange(12).reshape(3, 4), torch.tensor([1, 4, 2]))
    samples = Samples(TensorRows(torch.zeros(3, 2), torch.tensor([1, 1, 2])), y)
    assert samples.lengths.tolist() == [[1, 1], [1, 4], [2, 2]]
    assert samples.batch(torch.tensor([0, 2])).y.tolist() == [[0, 1], [8, 9]]
    assert samples.batch(torch.tensor([0]), (2, 3)).y.tolist() == [[0, 1, 2]]


@pytest.mark.parametrize(
    "rows", [TensorRows(torch.zeros(2, 3)), TokenRows(torch.zeros(2, 3, dtype=torch.int32))]
)
def test_rows_say_their_shape_and_size(rows):
    assert isinstance(rows, Rows)
    assert rows.shape[-1] == 3
    assert rows.nbytes == 24
    assert rows.fixed
