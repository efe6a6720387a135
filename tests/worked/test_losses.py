"""Losses, probabilities and penalties with values one can compute by hand."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from castalia.objectives import (
    L1,
    L2,
    BinaryCrossEntropy,
    CrossEntropy,
    GaussianLikelihood,
    SquaredError,
    smooth_labels,
)
from castalia.optim import build_optimizer
from castalia.protocols import Batch


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
    "convention, true, other", [("others", 0.9, 0.1 / 9), ("torch", 0.91, 0.01)]
)
def test_smoothed_labels_of_ten_classes(convention, true, other):
    labels = smooth_labels(torch.tensor([3]), 10, 0.1, convention)
    expected = torch.full((1, 10), other)
    expected[0, 3] = true
    assert_close(labels, expected)
    assert labels.sum().item() == pytest.approx(1.0)


@pytest.mark.parametrize("convention", ["others", "torch"])
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


def test_conventions_of_the_squared_error_differ_by_constants_only():
    outputs, targets = torch.tensor([[1.0], [4.0], [2.0]]), torch.tensor([[0.0], [2.0], [5.0]])
    mean = SquaredError().terms(nn.Identity(), Batch(outputs, targets), "train")["loss"].item()
    assert mean == pytest.approx((1 + 4 + 9) / 3)
    assert SquaredError().rows(outputs, targets).sum().item() == pytest.approx(3 * mean)


def test_binary_cross_entropy_is_its_formula_in_probabilities():
    z = torch.linspace(-5, 5, 11, dtype=torch.float64)[:, None]
    y = (torch.arange(11)[:, None] % 2).double()
    p = torch.sigmoid(z)
    formula = -(y * torch.log(p) + (1 - y) * torch.log(1 - p))
    assert_close(BinaryCrossEntropy().rows(z, y), formula.squeeze(1))
    assert_close(
        BinaryCrossEntropy().rows(z, y), F.binary_cross_entropy(p, y, reduction="none")[:, 0]
    )


def test_cross_entropy_is_logsumexp_minus_the_logit_of_the_truth():
    z, y = torch.tensor([[1.0, 2.0, 3.0], [0.5, -1.0, 9.0]]), torch.tensor([2, 0])
    assert_close(CrossEntropy().rows(z, y), z.logsumexp(1) - z[[0, 1], y])
    assert_close(CrossEntropy().rows(z + 100, y), CrossEntropy().rows(z, y), atol=1e-4, rtol=0)


def test_two_class_softmax_is_a_sigmoid_of_the_difference():
    z = torch.randn(50, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for y in (0, 1):
        two = CrossEntropy().rows(z, torch.full((50,), y))
        one = BinaryCrossEntropy().rows(z[:, 1:] - z[:, :1], torch.full((50, 1), float(y)).double())
        assert_close(two, one, atol=1e-12, rtol=0)


def test_the_log_likelihood_is_finite_where_the_likelihood_underflows():
    z, y = torch.zeros(10_000, 4, dtype=torch.float64), torch.zeros(10_000, dtype=torch.long)
    assert torch.softmax(z, 1)[:, 0].prod().item() == 0.0
    assert CrossEntropy().rows(z, y).sum().item() == pytest.approx(10_000 * math.log(4))


def test_the_gaussian_likelihood_is_its_formula_and_has_the_gradient_of_the_squared_error():
    outputs = torch.tensor([[0.5, 0.3], [2.0, 0.3]], dtype=torch.float64, requires_grad=True)
    y = torch.tensor([[1.0], [-1.0]], dtype=torch.float64)
    loss = GaussianLikelihood().terms(nn.Identity(), Batch(outputs, y), "train")["loss"]
    normal = GaussianLikelihood().distribution(outputs.detach())
    s2, mean = normal.variance, normal.mean
    formula = 0.5 * torch.log(2 * math.pi * s2) + (y - mean) ** 2 / (2 * s2)
    assert_close(loss, formula.mean())
    (gradient,) = torch.autograd.grad(loss, outputs)
    assert_close(gradient[:, :1], (mean - y) / s2 / 2)  # proportional to that of (y - mean)^2


@pytest.fixture
def problem():
    """A linear unit in double precision and a batch for it."""
    source = torch.Generator().manual_seed(0)
    draw = [torch.randn(6, n, generator=source, dtype=torch.float64) for n in (3, 1)]
    net = nn.Linear(3, 1).double()
    with torch.no_grad():
        net.weight.copy_(torch.tensor([[0.5, -1.0, 2.0]]))
        net.bias.fill_(0.25)
    return net, Batch(*draw)


def gradients(objective, net, batch):
    loss = objective.terms(net, batch, "train")["loss"]
    return torch.autograd.grad(loss, [net.weight, net.bias])


@pytest.mark.parametrize(
    "penalty, added", [(L2(0.3), lambda w: 0.3 * w), (L1(0.3), lambda w: 0.3 * w.sign())]
)
def test_a_penalty_adds_its_gradient_to_the_weights_and_spares_the_bias(problem, penalty, added):
    net, batch = problem
    plain, both = (gradients(o, net, batch) for o in (SquaredError(), SquaredError() + penalty))
    assert_close(both[0], plain[0] + added(net.weight.detach()))
    assert_close(both[1], plain[1])


def test_a_penalty_of_strength_zero_changes_nothing(problem):
    net, batch = problem
    plain, both = (gradients(o, net, batch) for o in (SquaredError(), SquaredError() + L2(0.0)))
    assert_close(both, plain)


def test_weight_decay_of_plain_gradient_descent_is_the_l2_penalty(problem):
    net, batch = problem
    penalised = gradients(SquaredError() + L2(0.3), net, batch)
    expected = [p.detach() - 0.1 * g for p, g in zip(net.parameters(), penalised, strict=True)]
    optimizer = build_optimizer("sgd", net.parameters(), lr=0.1, weight_decay=0.3)
    SquaredError().terms(net, batch, "train")["loss"].backward()
    optimizer.step()
    for parameter, place in zip(net.parameters(), expected, strict=True):
        assert_close(parameter.detach(), place, atol=1e-12, rtol=0)


def test_smoothed_labels_keep_the_best_logits_finite():
    z = smooth_labels(torch.tensor([3]), 10, 0.1).log().requires_grad_()
    CrossEntropy(label_smoothing=0.1, convention="others").rows(
        z, torch.tensor([3])
    ).sum().backward()
    assert_close(z.grad, torch.zeros_like(z))
    gap = (z[0, 3] - z[0, 0]).item()
    assert gap == pytest.approx(math.log(0.9 * 9 / 0.1), rel=1e-5)
