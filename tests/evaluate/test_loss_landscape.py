"""The loss around trained weights, on problems where it can be written down."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia import MLPClassifier
from castalia.errors import InvalidParameter
from castalia.evaluate import LossLandscape, to_svg
from castalia.evaluate.landscape import filter_normalised, random_directions
from castalia.objectives import L2, CrossEntropy, SquaredError
from castalia.protocols import Batch
from castalia.testing.toys import moons


def small(seed=0):
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 2)).double()
    return net, torch.randn(30, 3).double(), torch.arange(30) % 2


def test_the_middle_is_the_loss_of_the_network_and_the_grid_has_its_shape():
    net, x, y = small()
    objective = CrossEntropy() + L2(0.1)
    shown = LossLandscape.from_network(net, objective, x, y, points=7, batch_size=8)
    expected = objective.terms(net.eval(), Batch(x, y), "train")["loss"].item()
    assert shown.loss.shape == (7, 7)
    assert shown.centre == shown.loss[3, 3] == pytest.approx(expected, rel=1e-12)
    assert shown.steps[3] == 0.0
    line = LossLandscape.from_network(net, objective, x, y, points=5, dimensions=1)
    assert line.loss.shape == (5,)
    assert line.centre == pytest.approx(expected, rel=1e-12)


def test_points_of_the_grid_are_losses_at_moved_weights():
    net, x, y = small()
    shown = LossLandscape.from_network(net, CrossEntropy(), x, y, points=5, radius=0.5)
    first, second = random_directions(net, 2, random_state=0)
    moved, _, _ = small()
    with torch.no_grad():
        for name, p in moved.named_parameters():
            p += 0.5 * first[name] - 0.25 * second[name]
    expected = CrossEntropy().rows(moved.eval()(x), y).mean().item()
    assert shown.loss[4, 1] == pytest.approx(expected, rel=1e-10)


def test_weights_count_and_the_network_is_left_bit_for_bit():
    net, x, y = small()
    net.train()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    weight = torch.linspace(0, 2, 30).double()
    shown = LossLandscape.from_network(
        net, CrossEntropy(), x, y, weight=weight, points=3, batch_size=7
    )
    loss = CrossEntropy().rows(net.eval()(x), y)
    assert shown.centre == pytest.approx(((loss * weight).sum() / weight.sum()).item())
    LossLandscape.from_network(net.train(), CrossEntropy(), x, y, points=3)
    assert all(module.training for module in net.modules())
    assert all(p.grad is None and p.requires_grad for p in net.parameters())
    for name, value in net.state_dict().items():
        assert_close(value, before[name], rtol=0, atol=0)


def test_a_layer_used_twice_is_left_as_it_was():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = self.second = nn.Linear(3, 3)

        def forward(self, x):
            return self.second(torch.tanh(self.first(x)))

    net = Twice()
    weight, before = net.first.weight, net.first.weight.clone()
    LossLandscape.from_network(net, SquaredError(), torch.ones(4, 3), torch.ones(4, 3), points=3)
    assert net.first.weight is weight
    assert torch.equal(weight, before)


def test_every_filter_of_a_direction_has_the_length_of_the_networks():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(2, 5, 3), nn.BatchNorm2d(5), nn.Flatten(), nn.Linear(20, 3))
    (found,) = random_directions(net, 1, random_state=1)
    for name in ("0.weight", "3.weight"):
        ours = net.get_parameter(name).detach().flatten(1).norm(dim=1)
        assert_close(found[name].flatten(1).norm(dim=1), ours)
        assert len(ours) in (5, 3)
    for name in ("0.bias", "1.weight", "1.bias", "3.bias"):
        assert not found[name].any()
    (plain,) = random_directions(net, 1, random_state=1, normalise=False)
    cosine = nn.functional.cosine_similarity(
        plain["0.weight"].flatten(1), found["0.weight"].flatten(1)
    )
    assert_close(cosine, torch.ones(5))


def test_a_filter_of_zeros_is_not_moved():
    net = nn.Linear(2, 2)
    nn.init.zeros_(net.weight)
    found = filter_normalised(net, {"weight": torch.ones(2, 2), "bias": torch.ones(2)})
    assert not found["weight"].any()


def test_rescaled_relu_layers_have_the_same_landscape():
    net, x, y = small()
    plain = LossLandscape.from_network(net, CrossEntropy(), x, y, points=5)
    free = LossLandscape.from_network(net, CrossEntropy(), x, y, points=5, normalise=False)
    with torch.no_grad():
        net[0].weight *= 10
        net[0].bias *= 10
        net[3].weight /= 10
    scaled = LossLandscape.from_network(net, CrossEntropy(), x, y, points=5)
    np.testing.assert_allclose(scaled.loss, plain.loss, rtol=1e-10)
    other = LossLandscape.from_network(net, CrossEntropy(), x, y, points=5, normalise=False)
    assert np.abs(other.loss - free.loss).max() > 0.1


def test_a_sharper_quadratic_is_sharper():
    found = []
    for scale in (1.0, 3.0):
        net = nn.Linear(4, 1, bias=False).double()
        nn.init.ones_(net.weight)
        x = scale * torch.eye(4).double()
        shown = LossLandscape.from_network(net, SquaredError(), x, net(x).detach(), points=11)
        assert shown.centre == 0
        found.append(shown.sharpness())
        assert shown.sharpness(0.2) < shown.sharpness(0.5) < shown.sharpness()
        np.testing.assert_allclose(shown.loss, shown.loss[::-1, ::-1])  # a bowl
    assert found[1] == pytest.approx(9 * found[0])


def test_an_estimator_shows_its_own_loss():
    X, y = moons(200)
    model = MLPClassifier(hidden=(8,), epochs=20, class_weight={0: 1, 1: 3}, random_state=0)
    model.fit(X, y)
    shown = LossLandscape.from_estimator(model, X, y, points=3, radius=0.1)
    p = model.predict_proba(X)[np.arange(200), y]
    assert shown.loss.shape == (3, 3)
    assert shown.centre == pytest.approx(-np.log(p).mean(), rel=1e-4)


@pytest.mark.parametrize("dimensions, kind", [(1, "contour"), (2, "contour"), (2, "surface")])
def test_the_landscape_is_drawn(dimensions, kind):
    net, x, y = small()
    shown = LossLandscape.from_network(
        net, CrossEntropy(), x, y, points=5, dimensions=dimensions
    ).plot(kind=kind)
    assert "<svg" in to_svg(shown.figure_)
    assert shown.ax_.get_xlabel()


def test_a_plain_loss_function_serves_as_well_as_an_objective():
    net, x, y = small()
    ours = LossLandscape.from_network(net, CrossEntropy(), x, y, points=3)
    plain = LossLandscape.from_network(net, nn.CrossEntropyLoss(), x, y, points=3)
    np.testing.assert_allclose(plain.loss, ours.loss, rtol=1e-12)
    with pytest.raises(InvalidParameter, match="`weight` must be None beside a plain loss"):
        LossLandscape.from_network(net, nn.CrossEntropyLoss(), x, y, weight=x[:, 0], points=3)


def test_levels_have_equal_ratios_over_decades_and_equal_steps_within_one():
    steps = np.array([-1.0, 0, 1])
    wide = LossLandscape(np.geomspace(1e-3, 10, 9).reshape(3, 3), steps).levels(5)
    np.testing.assert_allclose(wide, np.geomspace(1e-3, 10, 5))
    narrow = LossLandscape(np.linspace(1, 2, 9).reshape(3, 3), steps).levels(5)
    np.testing.assert_allclose(narrow, np.linspace(1, 2, 5))
    flat = LossLandscape(np.ones((3, 3)), steps)
    assert (np.diff(flat.levels()) > 0).all()
    broken = LossLandscape(np.full((3, 3), np.nan), steps)
    assert (np.diff(broken.levels()) > 0).all()
    for kind in ("contour", "surface"):
        LossLandscape(np.geomspace(1e-3, 10, 9).reshape(3, 3), steps).plot(kind=kind, levels=wide)


def test_two_curves_on_one_pair_of_axes_have_names_and_colours():
    steps = np.array([-1.0, 0, 1])
    first = LossLandscape(steps**2, steps).plot(name="wide")
    second = LossLandscape(3 * steps**2, steps).plot(ax=first.ax_, name="narrow")
    lines = second.ax_.lines
    assert [line.get_label() for line in lines] == ["wide", "narrow"]
    assert lines[0].get_color() != lines[1].get_color()


def test_errors_name_the_value():
    net, x, y = small()
    with pytest.raises(InvalidParameter, match=r"`points` must be odd and at least 3.*got 4"):
        LossLandscape.from_network(net, CrossEntropy(), x, y, points=4)
    with pytest.raises(InvalidParameter, match=r"`dimensions` must be 1 or 2; got 3"):
        LossLandscape.from_network(net, CrossEntropy(), x, y, dimensions=3)
    with pytest.raises(InvalidParameter, match=r"`radius` must be above 0; got 0"):
        LossLandscape.from_network(net, CrossEntropy(), x, y, radius=0)
    shown = LossLandscape(np.zeros((3, 3)), np.array([-1.0, 0, 1]))
    with pytest.raises(InvalidParameter, match=r"`kind` must be .*got 'heat'"):
        shown.plot(kind="heat")
