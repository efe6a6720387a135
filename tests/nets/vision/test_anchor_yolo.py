"""The detector with anchors: priors, grids, and the boxes that answers become."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.nets.vision import AnchorYOLO

ANCHORS = [[(0.1, 0.2), (0.2, 0.1)], [(0.5, 0.4), (0.9, 0.8)]]
IMAGES = torch.zeros(2, 3, 64, 96)


def small(**settings):
    settings = {"anchors": ANCHORS, "strides": (16, 32), "width": 8, **settings}
    return AnchorYOLO(3, 4, **settings)


def answering(net, grid, place, raw):
    """Let one grid answer the same raw numbers at one anchor, and zero elsewhere."""
    for number, head in enumerate(net.heads):
        last = head[-1]
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        if number == grid:
            last.bias.data.unflatten(0, (2, -1))[place, : len(raw)] = torch.tensor(raw)
    return net.eval()


def test_at_zero_every_box_is_its_prior():
    net = answering(small(), 0, 0, [0.0])
    found, priors = net(IMAGES), net.priors(IMAGES)
    assert found.shape == (2, 2 * (4 * 6 + 2 * 3), 9)
    assert_close(found[0, :, :4], priors)
    assert_close(priors[0], torch.tensor([0.5 / 6, 0.5 / 4, 0.1, 0.2]))
    assert_close(priors[-1], torch.tensor([2.5 / 3, 1.5 / 2, 0.9, 0.8]))


def test_answers_move_and_stretch_the_prior():
    raw = [1.0, -2.0, 0.5, -0.5]
    net = answering(small(), 1, 1, raw)
    s = torch.tensor(raw).sigmoid()
    found, cell, prior = (t[-1] for t in (net(IMAGES)[0], net.cells(IMAGES), net.priors(IMAGES)))
    assert_close(found[:2], cell[:2] + (2 * s[:2] - 1) * cell[2:])
    assert_close(found[2:4], prior[2:] * (2 * s[2:]) ** 2)


def test_centres_reach_one_cell_to_each_side():
    for raw in (30.0, -30.0):
        net = answering(small(), 0, 0, [raw, raw])
        gap = (net(IMAGES)[0, 0, :2] - net.cells(IMAGES)[0, :2]) / net.cells(IMAGES)[0, 2:]
        assert_close(gap.abs(), torch.ones(2))


def test_the_finer_grid_hears_from_the_coarser_one():
    net = small().eval()
    before = net(IMAGES)[:, :48]
    nn.init.normal_(net.stages[-1][0][0].weight, std=10.0)
    x = torch.rand_like(IMAGES)
    assert not torch.equal(net(x)[:, :48], before)
    x.requires_grad_()
    (gradient,) = torch.autograd.grad(net(x)[:, :48].sum(), net.reductions[0][0].weight)
    assert gradient.abs().max() > 0


def test_any_size_will_do():
    net = small().eval()
    for height, width in ((64, 96), (70, 33), (128, 128)):
        x = torch.zeros(1, 3, height, width)
        assert net(x).shape[1] == len(net.cells(x)) == len(net.priors(x))


def test_one_grid_or_three():
    assert small(anchors=ANCHORS[:1], strides=(16,))(IMAGES).shape == (2, 48, 9)
    net = small(anchors=[*ANCHORS, [(0.9, 0.9), (1.0, 1.0)]], strides=(8, 16, 32))
    assert net(IMAGES).shape == (2, 2 * (8 * 12 + 4 * 6 + 2 * 3), 9)
    assert all(p.grad is not None for p in backward(net))


def backward(net):
    net(torch.rand(2, 3, 64, 96)).square().sum().backward()
    return net.parameters()


def test_scores_are_class_probability_times_confidence_of_logits():
    logit = torch.tensor([0.8, 0.5, 0.25]).logit()
    outputs = torch.cat([torch.zeros(4), logit])[None, None]
    assert_close(AnchorYOLO.scores(small(), outputs)[0, 0], torch.tensor([0.4, 0.2]))


def test_training_begins_with_little_confidence():
    assert small().eval().scores(small().eval()(IMAGES)).max() < 0.02


def test_errors_name_the_values():
    with pytest.raises(InvalidParameter, match=r"powers of two .* got \(16, 24\)"):
        small(strides=(16, 24))
    with pytest.raises(ShapeMismatch, match=r"got \(2, 2, 2\) for strides \(16,\)"):
        small(strides=(16,))
