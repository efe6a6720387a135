"""Channels and filters of a layer."""

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from torch import nn

from castalia import MLPClassifier
from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.evaluate import FeatureMaps, to_svg
from castalia.testing.toys import moons


def convolutional():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 6, 3, padding=1),
        nn.ReLU(inplace=True),
        nn.Flatten(),
        nn.Dropout(0.5),
        nn.Linear(6 * 64, 10),
    )


def test_maps_are_the_outputs_of_the_layer_also_before_an_activation_in_place():
    net, x = convolutional(), torch.randn(3, 1, 8, 8)
    shown = FeatureMaps.from_network(net, x, row=2)
    expected = net[0](x)[2].detach().numpy()
    np.testing.assert_allclose(shown.maps, expected, rtol=1e-4, atol=1e-6)
    assert (shown.maps < 0).any()
    assert shown.image.shape == (8, 8)
    after = FeatureMaps.from_network(net, x, "1", row=-1)
    np.testing.assert_allclose(after.maps, expected.clip(0), rtol=1e-4, atol=1e-6)


def test_the_network_is_left_in_its_mode_and_runs_in_evaluation():
    net = convolutional().train()
    a, b = (FeatureMaps.from_network(net, torch.ones(1, 1, 8, 8), "4").maps for _ in range(2))
    np.testing.assert_array_equal(a, b)
    assert all(module.training for module in net.modules())


def test_series_rows_and_sequences_have_channels_first():
    series = nn.Conv1d(2, 5, 3)
    assert FeatureMaps.from_network(series, torch.randn(1, 2, 30), "").maps.shape == (5, 28)
    assert FeatureMaps.from_network(nn.Linear(4, 7), torch.randn(2, 4)).maps.shape == (7,)
    assert FeatureMaps.from_network(nn.Linear(4, 7), torch.randn(1, 9, 4)).maps.shape == (7, 9)
    volume = nn.Conv3d(1, 2, 3)
    assert FeatureMaps.from_network(volume, torch.randn(1, 1, 5, 5, 6)).maps.shape == (2, 9, 4)


def test_filters_are_the_weights():
    net = convolutional()
    weight = net[0].weight.detach().numpy()
    np.testing.assert_allclose(FeatureMaps.from_filters(net).maps, weight[:, 0])
    dense = nn.Linear(12, 3)
    shown = FeatureMaps.from_filters(dense, shape=(3, 4))
    np.testing.assert_allclose(shown.maps, dense.weight.detach().numpy().reshape(3, 3, 4))
    with pytest.raises(ShapeMismatch, match=r"inputs, 12; got \(5, 5\)"):
        FeatureMaps.from_filters(dense, shape=(5, 5))
    with pytest.raises(InvalidParameter, match="such as '0'; got '1'"):
        FeatureMaps.from_filters(net, "1")


def test_the_mosaic_holds_every_channel_once():
    maps = np.arange(1, 7)[:, None, None] * np.ones((6, 4, 4))
    picture = FeatureMaps(maps)._mosaic()
    values, counts = np.unique(picture[~np.isnan(picture)], return_counts=True)
    assert values.tolist() == [1, 2, 3, 4, 5, 6]
    assert (counts == 16).all()
    assert np.isnan(picture).any()


def test_channels_left_out_are_counted():
    shown = FeatureMaps.from_network(convolutional(), torch.ones(1, 1, 8, 8), most=4).plot()
    assert len(shown.maps) == 4
    assert shown.hidden == 2
    assert "2 more" in shown.ax_.get_title()


@pytest.mark.parametrize("shape", [(5, 6, 7), (1, 3, 3), (4, 30), (11,), (1,)])
def test_it_is_drawn_on_its_own_figure_or_on_given_axes(shape):
    shown = FeatureMaps(np.linspace(-1, 1, int(np.prod(shape))).reshape(shape), "x")
    assert "<svg" in to_svg(shown.plot().figure_)
    mine = Figure().add_subplot()
    assert shown.plot(ax=mine).ax_ is mine
    FeatureMaps(np.zeros(shape), image=np.zeros((3, 3, 3))).plot()


def test_an_estimator_and_errors():
    X, y = moons(60)
    model = MLPClassifier(hidden=(5,), epochs=1, random_state=0).fit(X, y)
    assert FeatureMaps.from_estimator(model, X, layer="layers.1").maps.shape == (5,)
    with pytest.raises(InvalidParameter, match="`row` must be one of the 60 rows; got 60"):
        FeatureMaps.from_estimator(model, X, row=60)
    with pytest.raises(InvalidParameter, match="got 'layer.1'. Did you mean"):
        FeatureMaps.from_estimator(model, X, layer="layer.1")
    with pytest.raises(InvalidParameter, match="ReLU must have a convolutional or linear layer"):
        FeatureMaps.from_network(nn.ReLU(), torch.ones(1, 2))
    with pytest.raises(ShapeMismatch, match=r"got \(1, 1, 1, 1\)"):
        FeatureMaps(np.ones((1, 1, 1, 1)))
