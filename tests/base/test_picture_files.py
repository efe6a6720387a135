"""Estimators that learn from images in files."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from castalia.data import read
from castalia.data.images import FileRows
from castalia.data.images import image_adapter as adapters
from castalia.errors import DataWarning, InvalidData
from castalia.models.vision.image_classifier import ImageClassifier
from castalia.testing import toy


@dataclass(kw_only=True, eq=False, repr=False)
class Small(ImageClassifier):
    """One convolution, the mean of its maps, a linear layer."""

    def _network(self, spec):
        conv = nn.Conv2d(spec.inputs, 8, 3)
        pool = nn.AdaptiveAvgPool2d(1)
        return nn.Sequential(conv, nn.ReLU(), pool, nn.Flatten(), nn.Linear(8, spec.outputs))


def small(epochs):
    return Small(epochs=epochs, lr=0.03, batch_size=32, random_state=0)


@pytest.fixture
def folder(tmp_path):
    pictures, labels = toy("stripes")
    for i, (picture, label) in enumerate(zip(pictures[:160], labels, strict=False)):
        place = tmp_path / "set" / f"class {label}"
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.asarray(picture, dtype=np.uint8)).save(place / f"{i:03}.png")
    return tmp_path / "set"


def test_a_folder_is_learnt_from(folder):
    images = read(folder)
    model = small(30).fit(images)
    assert model.score(images, images.target) > 0.95
    assert model.classes_.tolist() == sorted(set(images.target))


def test_files_that_stay_on_disk_give_the_same_weights_to_the_bit(folder, monkeypatch):
    held = small(2).fit(read(folder))
    seen = []
    monkeypatch.setattr(adapters, "fits_memory", lambda size: False)
    plan = FileRows.plan
    monkeypatch.setattr(
        FileRows, "plan", lambda self, b: seen.append(len(b := list(b))) or plan(self, b)
    )
    streamed = small(2).fit(read(folder))
    assert seen == [5, 5]
    for one, other in zip(held.module_.parameters(), streamed.module_.parameters(), strict=True):
        assert torch.equal(one, other)


def test_broken_files_are_left_out_of_a_training_and_told(folder):
    images = read(folder)
    names = images.source.names
    for name in (names[3], names[90]):
        (folder / name).write_bytes((folder / name).read_bytes()[:80])
    with pytest.warns(DataWarning, match="2 of 160 files of .* cannot be decoded and were left"):
        model = small(1).fit(images)
    assert model.spec_.rows == 158
    with pytest.raises(InvalidData, match="2 of 160 cannot be decoded"):
        model.predict(images)
