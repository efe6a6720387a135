"""Classifiers without arguments: what the recipe chooses, and that arguments win."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import castalia
from castalia import ResNetClassifier, Training
from castalia.data.augment import Crop, Flip, Recolor
from castalia.data.images import ImageAdapter, as_images
from castalia.errors import InvalidParameter
from castalia.models.vision import FastConvNetClassifier
from castalia.models.vision.image_recipe import FEW, image_amounts, image_augmentation
from castalia.models.vision.image_views import average_views
from castalia.testing import toy

SMALL = {"depth": 8, "width": 4, "random_state": 0}


@pytest.mark.parametrize("rows", [10, 600, 5_000, 50_000, 1_000_000])
def test_steps_stay_between_those_of_few_and_of_many_images(rows):
    epochs, batch, lr = image_amounts(rows)
    assert 15 <= epochs <= 100
    assert 32 <= batch <= 512
    assert 0.002 < lr <= 0.01
    assert epochs == 100 or epochs * -(-rows // batch) >= 1_400


def test_a_start_is_left_slower():
    assert image_amounts(600, started=True).lr == pytest.approx(image_amounts(600).lr / 10)


def steps(augment):
    return [type(step) for step in getattr(augment, "steps", [augment])]


def test_colour_is_mirrored_grey_is_not_and_few_images_change_more():
    assert steps(image_augmentation(50_000, 3, (32, 32))) == [Flip, Crop]
    assert steps(image_augmentation(50_000, 1, (28, 28))) == [Crop]
    assert Recolor in steps(image_augmentation(FEW, 3, (64, 64)))
    assert Flip not in steps(image_augmentation(FEW, 1, (64, 64)))


def test_unset_settings_follow_the_images_and_set_ones_win():
    X, y = toy("stripes")
    model = ResNetClassifier(epochs=1, **SMALL).fit(X, y)
    assert (model.settings_["epochs"], model.settings_["batch_size"]) == (1, 32)
    assert model.settings_["lr"] == pytest.approx(0.0025)
    own = Training(optimizer="sgd", watch=False)
    other = ResNetClassifier(epochs=1, batch_size=60, training=own, **SMALL).fit(X, y)
    assert other.settings_["batch_size"] == 60
    assert other.settings_["lr"] == 1e-3
    quiet = replace(ResNetClassifier.usual_training, watch=False)
    same = ResNetClassifier(epochs=1, training=quiet, **SMALL).fit(X, y)
    assert same.settings_["lr"] == model.settings_["lr"]
    assert model.get_params()["epochs"] == 1
    assert ResNetClassifier().get_params()["epochs"] is None


def test_a_word_that_is_no_change_is_refused():
    with pytest.raises(InvalidParameter, match="`augment` must be 'auto', a transform"):
        ResNetClassifier(augment="autp", **SMALL).fit(*toy("stripes"))


def test_views_are_averaged_over_mirror_images_and_shifts():
    x = torch.arange(16.0).view(1, 1, 4, 4)
    seen = []

    def net(x):
        seen.append(x)
        return x.flatten(1)[:, :2]

    out = average_views(net, x, "shift")
    assert len(seen) == 6
    wide = torch.nn.functional.pad(x, (1, 1, 1, 1), mode="reflect")
    views = [x, x.flip(-1)], [wide[..., :4, :4], wide[..., :4, :4].flip(-1)]
    views += ([wide[..., 2:, 2:], wide[..., 2:, 2:].flip(-1)],)
    shares = (0.25, 0.125, 0.125)
    expected = sum(
        s * v.flatten(1)[:, :2] for s, pair in zip(shares, views, strict=True) for v in pair
    )
    torch.testing.assert_close(out, expected)


def test_predictions_of_mirrored_images_are_the_same_with_flip(tmp_path):
    X, y = toy("stripes")
    model = ResNetClassifier(epochs=1, views="flip", **SMALL).fit(X, y)
    mirrored = np.ascontiguousarray(X[:, :, ::-1])
    np.testing.assert_allclose(model.predict_proba(X), model.predict_proba(mirrored), atol=1e-5)
    castalia.save(model, tmp_path / "model")
    again = castalia.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_patches_have_the_covariance_of_the_images():
    X = np.random.default_rng(0).integers(0, 256, (40, 6, 6, 3), dtype=np.uint8)
    images = as_images(X)
    adapter = ImageAdapter(patch=2).fit(images)
    x = torch.from_numpy((X - adapter.mean) / adapter.deviation).permute(0, 3, 1, 2)
    cut = torch.nn.functional.unfold(x, 2).transpose(0, 1).flatten(1)
    np.testing.assert_allclose(adapter.covariance, (cut @ cut.mT / cut.shape[1]).numpy(), atol=1e-4)
    assert len(adapter.extra["covariance"]) == 12


def test_the_fast_network_takes_the_covariance_and_is_saved(tmp_path):
    X, y = toy("stripes")
    model = FastConvNetClassifier(widths=(8, 8), epochs=2, random_state=0).fit(X, y)
    castalia.save(model, tmp_path / "model")
    again = castalia.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert len(model.spec_.extra["covariance"]) == 4
