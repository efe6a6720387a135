"""Estimators of images: the seam between adapters, tasks and the loop."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from torch import nn

from castalia import ConvNetClassifier, Training
from castalia.data import Images
from castalia.data.images import ImageAdapter, as_images
from castalia.errors import DataWarning, InvalidData, InvalidParameter
from castalia.models.vision.image_classifier import ImageClassifier
from castalia.testing import toy

X, Y = toy("stripes")


@dataclass(kw_only=True, eq=False, repr=False)
class Small(ImageClassifier):
    """One convolution, the mean of its maps, a linear layer."""

    def _network(self, spec):
        conv = nn.Conv2d(spec.inputs, 8, 3)
        pool = nn.AdaptiveAvgPool2d(1)
        return nn.Sequential(conv, nn.ReLU(), pool, nn.Flatten(), nn.Linear(8, spec.outputs))


def small(**settings):
    return Small(**{"epochs": 30, "lr": 0.03, "batch_size": 32, "random_state": 0, **settings})


@pytest.fixture(scope="module")
def fitted():
    return small().fit(X[:160], Y[:160])


def test_it_learns_what_no_pixel_tells(fitted):
    assert fitted.score(X[160:], Y[160:]) > 0.95
    assert fitted.spec_.inputs == 1
    assert fitted.spec_.extra == {"size": [12, 12]}


def test_arrays_tensors_and_sets_of_pictures_are_one(fitted):
    first = torch.from_numpy(X[:4])[:, None]
    for same in (X[:4, ..., None], first, as_images(X[:4]), list(X[:4])):
        np.testing.assert_array_equal(fitted.predict_proba(same), fitted.predict_proba(X[:4]))


def test_labels_may_come_with_the_pictures(fitted):
    images = Images(as_images(X[:160]).source, Y[:160])
    again = small().fit(images)
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))


def test_pixels_stay_bytes_until_they_are_taken():
    rows = ImageAdapter().fit(as_images(X)).rows(as_images(X), np.float32)
    assert rows.x.dtype == torch.uint8
    batch = rows.take(torch.arange(len(X)))
    assert batch.dtype == torch.float32
    assert abs(float(batch.mean())) < 1e-4
    assert float(batch.std()) == pytest.approx(1, abs=1e-3)


def test_a_channel_without_contrast_stays_small():
    flat = np.full((4, 5, 5, 3), 0.1) + [0.0, 0.2, 0.7]
    flat[0, 0, 0, 0] = 1.0
    adapter = ImageAdapter().fit(as_images(flat))
    assert adapter.deviation[1:].tolist() == [1.0, 1.0]
    assert float(next(adapter.blocks(as_images(flat), np.float32))[:, 1:].abs().max()) < 1e-6


def test_the_scale_of_the_pixels_does_not_matter():
    bytes_, floats = (small(epochs=3).fit(x, Y) for x in (X, X.astype(np.float32) / 255))
    np.testing.assert_allclose(
        bytes_.predict_proba(X), floats.predict_proba(X / 255), rtol=1e-3, atol=1e-4
    )


def test_pictures_of_several_sizes_are_brought_to_one():
    ragged = [x[: 10 + i % 3] for i, x in enumerate(X)]
    model = small(image_size=12).fit(ragged, Y)
    assert model.score(ragged, Y) > 0.8
    assert model.predict(X[:3]).shape == (3,)
    chosen = small(epochs=1).fit(ragged, Y)
    assert chosen.spec_.extra == {"size": [32, 32]}


def test_rows_of_weight_nothing_are_as_good_as_absent():
    weight = (np.arange(len(X)) < 160).astype(float)
    kept = small(epochs=2).fit(X[:160], Y[:160])
    weighted = small(epochs=2).fit(X, Y, sample_weight=weight)
    same = torch.equal(kept.module_[0].weight, weighted.module_[0].weight)
    assert same


def test_an_adapter_comes_back_from_its_state(fitted):
    adapter = type(fitted.adapter_).from_state(fitted.adapter_.state())
    block = next(iter(adapter.blocks(as_images(X[:2]), np.float32)))
    assert torch.equal(block, next(iter(fitted.adapter_.blocks(as_images(X[:2]), np.float32))))


def test_a_run_of_pictures_is_resumed(tmp_path):
    settings = Training(run=str(tmp_path / "runs" / "stripes"))
    first = small(epochs=2, training=settings).fit(X, Y)
    again = small(epochs=2, training=settings).fit(X, Y)
    assert again.run_ == first.run_
    other = small(epochs=2, training=settings).fit(255 - X, Y)
    assert other.run_ != first.run_


@pytest.mark.parametrize(
    "bad, message",
    [
        (X.reshape(len(X), -1), r"must be an array \(N, H, W\).*reshape\(-1, height, width\)"),
        (np.zeros((4, 3, 8, 8)), r"Channels come last in arrays: use X.transpose\(0, 2, 3, 1\)"),
        (np.full((3, 4, 4), "a"), "must be numbers"),
        (np.zeros((0, 4, 4)), "got shape"),
        ([X[0], X[0, 0]], r"image 1 has the shape \(12,\)"),
        (torch.zeros(2, 2), r"must be \(N, C, H, W\)"),
        (np.where(np.arange(4) == 2, np.nan, 0)[:, None, None] * np.ones((4, 2, 2)), "image 2"),
    ],
)
def test_what_is_no_picture_is_refused(bad, message):
    with pytest.raises(InvalidData, match=message):
        small().fit(bad, np.arange(len(bad)) % 2)


def test_another_size_than_in_fit_is_refused(fitted):
    with pytest.raises(InvalidData, match="must have 12 x 12 pixels, as in fit; image 0 has 12 x"):
        fitted.predict(X[:2, :, :10])


def test_colour_is_told_grey_by_its_luminance(fitted):
    colour = np.repeat(X[:5, ..., None], 3, axis=3)
    np.testing.assert_array_equal(fitted.predict(colour), fitted.predict(X[:5]))


def test_a_handful_of_pictures_is_trained_in_single_precision():
    assert small(epochs=1).fit(X[:30], Y[:30]).settings_["precision"] == "float32"


# ---- one image, other scales, paths ----


@pytest.fixture(scope="module")
def coloured():
    X = np.random.default_rng(0).integers(0, 256, (8, 8, 8, 3)).astype(np.uint8)
    return X, ConvNetClassifier(widths=(2,), epochs=1, random_state=0).fit(X, [0, 1] * 4)


def test_a_single_picture_is_told_from_many(coloured):
    X, model = coloured
    with pytest.raises(InvalidData, match=r"got \(8, 8, 3\), which is one image. Give X\[None\]"):
        model.predict(X[0])
    for one in (Image.fromarray(X[0]), "cat.png"):
        with pytest.raises(InvalidData, match="Put it in a list"):
            model.predict(one)


@pytest.mark.parametrize("factor", [1 / 255, 257.0])
def test_pictures_on_another_scale_than_those_of_fit_are_told(coloured, factor):
    X, model = coloured
    with pytest.warns(DataWarning, match="on the scale of those of fit, whose values lie around"):
        model.predict(X * factor)


def test_bytes_are_told_where_fractions_were_learnt(coloured):
    X, _ = coloured
    model = ConvNetClassifier(widths=(2,), epochs=1, random_state=0).fit(X / 255, [0, 1] * 4)
    with pytest.warns(DataWarning, match="around .*; got values of at most 25"):
        model.predict(X)


def test_dark_pictures_and_zeros_are_no_other_scale(coloured):
    X, model = coloured
    for dark in (X // 200, X * 0.0, X.astype(float)):
        model.predict(dark)  # warnings are errors here


def test_pictures_may_be_paths_and_arrays_in_an_array(coloured, tmp_path):
    X, model = coloured
    paths = [tmp_path / f"{i}.png" for i in range(len(X))]
    for path, x in zip(paths, X, strict=True):
        Image.fromarray(x).save(path)
    held = np.empty(len(X), dtype=object)
    held[:] = list(X)
    for given in (paths, pd.Series([str(p) for p in paths], index=range(3, 11)), held):
        np.testing.assert_array_equal(model.predict_proba(given), model.predict_proba(X))
    with pytest.raises(InvalidData, match=r"`.*none.png` \(no such file\)"):
        model.predict([tmp_path / "none.png"])


def test_an_augmentation_that_is_none_is_refused():
    with pytest.raises(InvalidParameter, match="`augment` must be a transform .*; got 'flip'"):
        ConvNetClassifier(augment="flip").fit(np.zeros((4, 8, 8)), [0, 1] * 2)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16", "F"])
def test_opened_pictures_are_seen_as_their_files(coloured, tmp_path, mode):
    X, model = coloured
    if mode == "I;16":
        picture = Image.fromarray(X[0, :, :, 0].astype(np.uint16) * 257)
    elif mode == "F":
        picture = Image.fromarray(X[0, :, :, 0].astype(np.float32) / 255)
    else:
        picture = Image.fromarray(X[0]).convert(mode)
    path = tmp_path / "one.tif"
    picture.save(path)
    np.testing.assert_array_equal(model.predict_proba([picture]), model.predict_proba([path]))


def test_transparency_is_laid_on_white_whatever_the_scale(coloured):
    X, model = coloured
    clear = np.concatenate([X, np.full((*X.shape[:3], 1), 128, np.uint8)], axis=-1)
    found = model.predict_proba(clear.astype(float))
    np.testing.assert_allclose(found, model.predict_proba(clear), atol=0.01)
