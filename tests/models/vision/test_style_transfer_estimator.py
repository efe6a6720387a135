"""Painting: the loss falls, content features come back, styles are matched."""

import numpy as np
import pytest
import torch

from castalia import StyleTransfer, VGGClassifier
from castalia.base import load, save
from castalia.errors import InvalidData, InvalidParameter, SolverFailed
from castalia.models.vision import ConvNetClassifier, synthesise
from castalia.models.vision.colour_palette import palette, with_palette
from castalia.nets.vision import LeNet, Taps
from castalia.testing.toys import stripes, textures

SMALL = {"steps": 30, "random_state": 0, "device": "cpu"}


@pytest.fixture(scope="module")
def pictures():
    return textures()[0]


def features(painter, pictures):
    """Return the maps of the content layer for bytes."""
    x = torch.from_numpy(pictures).permute(0, 3, 1, 2).float() / 255
    return painter._maps(x)[painter.content_layers_[0]]


@pytest.mark.parametrize("start", ["content", "noise"])
def test_the_loss_never_rises(pictures, start):
    painter = StyleTransfer(start=start, **SMALL).fit(pictures[0])
    painter.transform(pictures[1:3])
    for history in painter.history_:
        losses = [line["loss"] for line in history]
        assert [line["step"] for line in history] == [0, 10, 20, 30]
        assert all(a >= b for a, b in zip(losses, losses[1:], strict=False))
        assert losses[-1] < 0.5 * losses[0]


def test_without_style_noise_becomes_a_picture_with_the_features_of_the_content(pictures):
    painter = StyleTransfer(
        style_weight=0.0,
        variation_weight=0.0,
        start="noise",
        recolour=False,
        content_layers=("relu2_1",),
        **{**SMALL, "steps": 200},
    ).fit(pictures[0])
    painted = painter.transform(pictures[1:2])
    first, last = painter.history_[0][0], painter.history_[0][-1]
    assert first["content"] > 0.1
    assert last["content"] < 0.01 * first["content"]
    wanted, found = features(painter, pictures[1:2]), features(painter, painted)
    # Bytes are cut at 0 and 255, where L-BFGS may go beyond
    assert (found - wanted).square().sum() < 0.05 * wanted.square().sum()


def test_without_content_the_painting_takes_the_style(pictures):
    painter = StyleTransfer(content_weight=0.0, variation_weight=0.0, **SMALL).fit(pictures[0])
    painter.transform(pictures[1:2])
    assert painter.history_[0][-1]["style"] < 0.05 * painter.history_[0][0]["style"]


def test_more_weight_on_the_content_keeps_more_of_it(pictures):
    kept = []
    for weight in (0.001, 0.1):
        painter = StyleTransfer(content_weight=weight, **SMALL).fit(pictures[0])
        painter.transform(pictures[1:2])
        kept.append(painter.history_[0][-1]["content"])
    assert kept[1] < 0.5 * kept[0]


def test_several_styles_are_averaged(pictures):
    both = StyleTransfer(**SMALL).fit(pictures[:2])
    first, second = (StyleTransfer(**SMALL).fit(p) for p in pictures[:2])
    for layer in both.style_layers_:
        mean = (first.grams_[layer] + second.grams_[layer]) / 2
        np.testing.assert_allclose(both.grams_[layer], mean, rtol=1e-4, atol=1e-5)


def test_a_classifier_of_ours_looks_and_can_be_saved_with_the_painter(tmp_path, pictures):
    X, y = textures(24)
    eyes = ConvNetClassifier(widths=(8, 8), convs=1, epochs=2, random_state=0).fit(X, y)
    painter = StyleTransfer(network=eyes, **SMALL).fit(pictures[0])
    assert painter.style_layers_ == ["stage1.2", "stage2.2"]
    painted = painter.transform(pictures[1:3])
    loaded = load(save(painter, tmp_path / "painter"))
    assert np.array_equal(loaded.transform(pictures[1:3]), painted)


def test_eyes_for_grey_pictures_leave_the_colours_alone(pictures):
    X, y = stripes(60)
    eyes = ConvNetClassifier(widths=(8, 8), convs=1, epochs=2, random_state=0).fit(X, y)
    settings = {"network": eyes, "recolour": False, "variation_weight": 0.0, **SMALL}
    painted = StyleTransfer(**settings).fit(X[0]).transform(pictures[1:2])
    luminance = np.array([0.299, 0.587, 0.114])
    moved = painted.astype(float) - pictures[1:2]
    inside = (painted > 0) & (painted < 255)
    along = moved / luminance  # the gradient by a pixel points along its luminance
    spread = along.max(axis=-1) - along.min(axis=-1)
    assert np.abs(moved).max() > 5
    assert spread[inside.all(axis=-1)].max() < 1.5 / 0.114 + 1  # bytes are rounded


def test_a_plain_module_and_named_layers_will_do(pictures):
    painter = StyleTransfer(
        network=LeNet(3, 2), content_layers=("act3",), style_layers=("act1",), **SMALL
    ).fit(pictures[0])
    assert painter.transform(pictures[:1]).dtype == np.uint8
    assert list(painter.grams_) == ["act1"]


def test_sizes_follow_the_longer_side_or_stay(pictures):
    wide = np.repeat(pictures[1], 2, axis=1)  # 16 x 32
    painter = StyleTransfer(image_size=20, **{**SMALL, "steps": 2}).fit(pictures[0])
    assert painter.transform(wide).shape == (1, 10, 20, 3)
    free = StyleTransfer(**{**SMALL, "steps": 2}).fit(pictures[0])
    assert [p.shape for p in free.transform([wide, pictures[0]])] == [(16, 32, 3), (16, 16, 3)]
    exact = StyleTransfer(image_size=(12, 14), **{**SMALL, "steps": 2}).fit(pictures[0])
    assert exact.transform(pictures[:2]).shape == (2, 12, 14, 3)


def test_the_palette_of_another_picture_is_taken_over():
    torch.manual_seed(0)
    x, other = 0.4 + 0.2 * torch.rand(2, 1, 3, 20, 20, dtype=torch.float64)
    mean, covariance = palette(other)
    found = palette(with_palette(x, mean, covariance))
    torch.testing.assert_close(found[0], mean, atol=1e-3, rtol=0)
    torch.testing.assert_close(found[1], covariance, atol=2e-5, rtol=0.01)


def test_the_input_of_a_fixed_network_is_found_from_its_features():
    torch.manual_seed(0)
    net = Taps(LeNet(1, 2).features, ["act1"]).double().eval()
    x = torch.rand(1, 1, 12, 12, dtype=torch.float64)
    with torch.no_grad():
        wanted = net(x)["act1"]

    def distance(x):
        return {"loss": (net(x)["act1"] - wanted).square().mean() / wanted.square().mean()}

    begin = torch.full_like(x, 0.5)
    found, history = synthesise(distance, begin, steps=300, tolerance=1e-8)
    assert history[0]["loss"] > 0.1
    assert distance(found)["loss"] <= 1e-8
    assert history[-1]["step"] < 300  # it stopped there
    assert (begin == 0.5).all()


def test_a_loss_that_is_not_finite_is_reported():
    with pytest.raises(SolverFailed, match="got nan after 0 iterations"):
        synthesise(lambda x: {"loss": x.sum() * float("nan")}, torch.zeros(1, 1, 2, 2))


def test_unusable_pictures_and_networks_are_named(pictures):
    with pytest.raises(InvalidData, match="between 0 and 1; image 0 goes from 0 to 300"):
        StyleTransfer().fit(np.linspace(0, 300, 192).reshape(8, 8, 3))
    with pytest.raises(InvalidData, match="maps of at least 4 x 4; got"):
        StyleTransfer().fit(pictures[0][:3, :3])
    with pytest.raises(InvalidParameter, match="`network` must be a fitted classifier"):
        StyleTransfer(network=VGGClassifier()).fit(pictures[0])
    with pytest.raises(InvalidParameter, match="got 'relu9_9'. Did you mean"):
        StyleTransfer(style_layers=("relu9_9",)).fit(pictures[0])
