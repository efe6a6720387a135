"""Losses, probabilities and penalties with values one can compute by hand."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from castalia.objectives import L2, BinaryCrossEntropy, CrossEntropy, smooth_labels


@pytest.mark.parametrize("classes, bits", [(2, 1), (8, 3)])
def test_an_event_of_probability_one_in_two_to_the_n_carries_n_bits(classes, bits):
    loss = CrossEntropy().rows(torch.zeros(1, classes, dtype=torch.float64), torch.tensor([0]))
    assert loss.item() / math.log(2) == pytest.approx(bits)


def test_the_negative_log_of_a_sigmoid_is_a_softplus():
    z = torch.linspace(-40, 40, 81, dtype=torch.float64)[:, None]
    for y in (0.0, 1.0):
        target = torch.full_like(z, y)
        loss = BinaryCrossEntropy().rows(z, target)
        assert_close(loss, F.softplus((1 - 2 * y) * z).squeeze(1))
        assert_close(loss, -torch.log(torch.sigmoid((2 * y - 1) * z)).squeeze(1))


def test_a_very_wrong_logit_costs_its_size_and_no_nan():
    loss = BinaryCrossEntropy().rows(torch.tensor([[1000.0]]), torch.tensor([[0.0]]))
    assert loss.item() == 1000.0


def test_the_jacobian_of_softmax_is_the_curvature_of_cross_entropy():
    z = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)

    def loss(z):
        return CrossEntropy().rows(z[None], torch.tensor([1]))[0]

    curvature = torch.autograd.functional.hessian(loss, z)
    p = torch.softmax(z, 0)
    assert_close(curvature, torch.diag(p) - torch.outer(p, p))
    printed = [[0.0819, -0.0220, -0.0599], [-0.0220, 0.1848, -0.1628], [-0.0599, -0.1628, 0.2227]]
    assert_close(curvature, torch.tensor(printed, dtype=torch.float64), atol=5e-5, rtol=0)


def test_the_gradient_of_cross_entropy_is_what_was_said_minus_what_is():
    z = torch.tensor([[1.0, 2.0, 3.0]], dtype=torch.float64, requires_grad=True)
    CrossEntropy().rows(z, torch.tensor([1])).sum().backward()
    assert_close(z.grad, torch.softmax(z.detach(), 1) - torch.tensor([[0.0, 1.0, 0.0]]).double())


@pytest.mark.parametrize(
    "convention, true, other", [("notes", 0.9, 0.1 / 9), ("torch", 0.91, 0.01)]
)
def test_smoothed_labels_of_ten_classes(convention, true, other):
    labels = smooth_labels(torch.tensor([3]), 10, 0.1, convention)
    expected = torch.full((1, 10), other)
    expected[0, 3] = true
    assert_close(labels, expected)
    assert labels.sum().item() == pytest.approx(1.0)


@pytest.mark.parametrize("convention", ["notes", "torch"])
def test_the_smoothed_loss_is_the_cross_entropy_with_the_smoothed_labels(convention):
    z = torch.arange(10.0)[None]
    loss = CrossEntropy(label_smoothing=0.1, convention=convention)
    labels = smooth_labels(torch.tensor([3]), 10, 0.1, convention)
    assert_close(loss.rows(z, torch.tensor([3])), -(labels * z.log_softmax(1)).sum(1))


@pytest.mark.parametrize("half, gradient", [(False, [[0.2, -0.4]]), (True, [[0.1, -0.2]])])
def test_the_gradient_of_the_squared_norm_of_the_weights(half, gradient):
    net = nn.Linear(2, 1)
    nn.init.ones_(net.bias)
    net.weight.data = torch.tensor([[1.0, -2.0]])
    L2(0.1, half=half).value(net).backward()
    assert_close(net.weight.grad, torch.tensor(gradient))
    assert net.bias.grad is None
