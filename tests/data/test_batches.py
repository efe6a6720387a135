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
        self.array, self.shape, self.dtype = array, array.shape, array.dtype
        self.longest = 0

    def __len__(self):
        return len(self.array)

    def fill(self, found, start):
        self.longest = max(self.longest, len(found))
        found[:] = self.array[start : start + len(found)]


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


@pytest.mark.parametrize("kind", [TensorRows, lambda x: DiskRows(Matrix(x.numpy()))])
@pytest.mark.parametrize("n", [5, 16, 17, 31, 32, 40, 41, 63])
def test_every_epoch_has_the_announced_number_of_batches_and_every_row_once(kind, n):
    samples = Samples(kind(torch.arange(float(n))[:, None]), torch.arange(n))
    for epoch in range(4):
        found = walk(samples, 5, epoch)
        assert len(found) == samples.n_batches(5)
        assert sorted(torch.cat([batch.y for batch in found]).tolist()) == list(range(n))


def test_rows_on_disk_come_in_the_same_order_while_a_window_holds_them(monkeypatch):
    monkeypatch.setattr(batches, "WINDOW", 12)
    array = np.arange(200, dtype=np.float32).reshape(100, 2)
    kept = np.flatnonzero(np.arange(100) % 10)
    held = Samples(TensorRows(torch.from_numpy(array)), torch.arange(100)).subset(kept)
    disk = Samples(DiskRows(Matrix(array)), torch.arange(100)).subset(kept)
    for one, other in zip(walk(held, 7), walk(disk, 7), strict=True):
        assert torch.equal(one.x, other.x)
        assert torch.equal(one.y, other.y)


def test_windows_on_disk_are_read_by_short_reads():
    array = np.arange(400, dtype=np.float32).reshape(200, 2)
    kept = np.flatnonzero(np.arange(200) % 10)
    matrix = Matrix(array)
    for batch in walk(Samples(DiskRows(matrix), torch.arange(200)).subset(kept), 7):
        assert torch.equal(batch.x[:, 0], 2.0 * batch.y)
    assert matrix.longest <= 20  # two blocks of 8 rows, and the gaps inside them


@pytest.mark.parametrize("wide", [False, True])
def test_windows_of_wide_rows_have_fewer(monkeypatch, wide):
    monkeypatch.setattr(batches, "BYTES", 8 * 3 * 8 if wide else 1 << 20)  # a block of 3 columns
    samples = Samples(DiskRows(Matrix(np.zeros((40, 3), np.float32))))
    assert [len(order) for _, order in samples.windows(0, 0)] == ([8] * 5 if wide else [16, 16, 8])


def shares(samples, size):
    """Return the share of the second class in each batch of an epoch."""
    found = [b.y.float().mean() for b in walk(samples, size) if len(b.y) == size]
    return torch.stack(found)


@pytest.mark.parametrize("disk", [False, True])
def test_batches_of_a_table_sorted_by_class_are_those_of_a_true_shuffle(monkeypatch, disk):
    monkeypatch.setattr(batches, "BLOCK", 64)
    monkeypatch.setattr(batches, "WINDOW", 512)  # 32,768 rows: an eighth of the table
    n, size = 1 << 18, 256
    x, y = np.zeros((n, 1), np.float32), torch.arange(n) >= n // 2
    rows = DiskRows(Matrix(x)) if disk else TensorRows(torch.from_numpy(x))
    found = shares(Samples(rows, y), size)
    deviation = 0.5 / size**0.5  # of a true shuffle
    assert len(found) == n // size
    assert (found - 0.5).abs().max() < 5 * deviation  # of 1,024 batches; once in 1,700 tables more
    assert found.std() < (1.3 if disk else 1.1) * deviation


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
