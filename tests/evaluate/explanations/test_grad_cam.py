"""Grad-CAM: the class activation map where there is one, and places that matter."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia import ConvNetClassifier
from castalia.errors import InvalidParameter
from castalia.evaluate import GradCAM
from castalia.nets.vision import ResNet, ViT


def test_it_is_the_class_activation_map_where_maps_are_averaged():
    torch.manual_seed(0)
    net = ResNet(3, 4, depth=8, width=4).eval()
    x = torch.randn(3, 3, 16, 16)
    found = GradCAM.from_network(net, x, [0, 1, 3])
    maps = net.maps(x).detach()
    weights = net.head.classes.weight.detach()[[0, 1, 3]]
    cam = torch.einsum("nk,nkhw->nhw", weights, maps).relu() / maps[0, 0].numel()
    cam = nn.functional.interpolate(cam[:, None], (16, 16), mode="bilinear")[:, 0]
    assert_close(torch.from_numpy(found.maps), cam, atol=1e-5, rtol=1e-4)
    assert found.names == ["0", "1", "3"]
    assert not net.training
    assert all(p.grad is None for p in net.parameters())


def corners(n=120):
    """A bright spot in one of two corners, on noise."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 60, (n, 16, 16), dtype=np.uint8)
    y = np.arange(n) % 2
    for image, label in zip(X, y, strict=True):
        place = slice(1, 6) if label else slice(10, 15)
        image[place, place] += 180
    return X, np.array(["low", "high"])[y]


def test_the_spot_that_decides_lights_up():
    X, y = corners()
    model = ConvNetClassifier(widths=(8, 16), convs=1, epochs=12, lr=0.01, random_state=0)
    model.fit(X, y)
    assert model.score(X, y) > 0.95
    cam = GradCAM.from_estimator(model, X[:20], y[:20])
    assert list(cam.names) == list(y[:20])
    quarters = np.stack([cam.maps[:, :8, :8].mean((1, 2)), cam.maps[:, 8:, 8:].mean((1, 2))], 1)
    assert (quarters.argmax(1) == (y[:20] == "low")).mean() > 0.8
    shown = cam.plot()
    assert [t.get_text() for t in shown.ax_.get_xticklabels()][:2] == list(y[:2])


def test_a_layer_that_is_not_there_and_a_network_without_maps_are_refused():
    net = ResNet(3, 2, depth=8, width=4)
    with pytest.raises(InvalidParameter, match=r"`layer` must be one of .* got 'features.stage9'"):
        GradCAM.from_network(net, torch.zeros(1, 3, 8, 8), layer="features.stage9")
    vit = nn.Sequential(nn.Flatten(), nn.Linear(12, 2))
    with pytest.raises(InvalidParameter, match="must have a layer that gives maps"):
        GradCAM.from_network(vit, torch.zeros(1, 3, 2, 2))
    with pytest.raises(InvalidParameter, match="`classes` must be from 0 to 1; got"):
        GradCAM.from_network(net, torch.zeros(1, 3, 8, 8), 7)


def test_the_patches_of_a_transformer_are_its_only_maps():
    net = ViT(3, 2, size=(8, 8), dim=8, depth=1, heads=2)
    assert GradCAM.from_network(net, torch.randn(1, 3, 8, 8)).maps.shape == (1, 8, 8)
