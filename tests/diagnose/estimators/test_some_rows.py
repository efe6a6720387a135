"""What the doctor measures of large batches."""

import numpy as np
import pytest
import torch

from castalia import ConvNetClassifier, Training
from castalia.diagnose.estimators import watcher
from castalia.diagnose.estimators.watcher import _some_rows
from castalia.protocols import Batch


@pytest.mark.parametrize(
    ("x", "rows"),
    [
        (torch.zeros(64, 10), 64),
        (torch.zeros(40, 3, 400, 400), 32),
        (torch.zeros(64, 3, 200, 200), 34),
        (torch.zeros(64, 128, dtype=torch.long), 64),
        (torch.zeros(32, 1024, dtype=torch.long), 8),
        (torch.zeros(32, 8192, dtype=torch.long), 4),
    ],
)
def test_large_pictures_and_long_texts_are_looked_at_in_part(x, rows):
    y = torch.arange(len(x))
    found = _some_rows(Batch(x, y, None))
    assert len(found.x) == rows
    assert found.y.equal(y[:rows])
    assert found.weight is None


def test_batches_that_are_no_tensors_are_looked_at_whole():
    batch = Batch(torch.zeros(2, 8).to_sparse_coo(), torch.zeros(2), None)
    assert _some_rows(batch) is batch


def test_the_size_of_a_batch_is_told_whatever_is_looked_at(monkeypatch):
    monkeypatch.setattr(watcher, "NUMBERS", 1)
    monkeypatch.setattr(watcher, "IMAGES", 3)
    seen = []
    real = watcher.ExtraPass
    monkeypatch.setattr(
        watcher,
        "ExtraPass",
        lambda net, batch, *rest: seen.append(len(batch.x)) or real(net, batch, *rest),
    )
    X = np.random.default_rng(0).integers(0, 256, (40, 8, 8), dtype=np.uint8)
    model = ConvNetClassifier(
        epochs=2, batch_size=20, random_state=0, training=Training(validation=0, watch=True)
    ).fit(X, np.arange(40) % 2)
    assert set(seen) == {3}
    assert {look.size for look in model._record.looks} == {20}
