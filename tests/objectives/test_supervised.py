"""Losses against torch's own and against the formula."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.objectives import (
    AbsoluteError,
    BinaryCrossEntropy,
    CrossEntropy,
    SquaredError,
    smooth_labels,
    weighted_mean,
)
from castalia.protocols import Batch

Z = torch.tensor([[1.0, -0.5, 2.0], [0.0, 3.0, -1.0]], dtype=torch.float64)
Y = torch.tensor([2, 0])
T = torch.tensor([[1.0, 0.0, 1.0], [0.0, 0.0, 1.0]], dtype=torch.float64)


@pytest.mark.parametrize(
    "objective, target, expected",
    [
        (SquaredError(), T, (Z - T).square().mean(dim=1)),
        (AbsoluteError(), T, (Z - T).abs().mean(dim=1)),
        (CrossEntropy(), Y, -torch.log_softmax(Z, 1)[torch.arange(2), Y]),
        (BinaryCrossEntropy(), T, (F.softplus(Z) - T * Z).mean(dim=1)),
    ],
    ids=["squared", "absolute", "cross-entropy", "binary"],
)
@pytest.mark.parametrize("weight", [None, [3.0, 1.0], [0.0, 2.0]])
def test_the_loss_is_the_weighted_mean_of_the_rows(objective, target, expected, weight):
    weight = None if weight is None else torch.tensor(weight, dtype=torch.float64)
    torch.testing.assert_close(objective.rows(Z, target), expected, rtol=0, atol=1e-12)
    loss = objective.terms(nn.Identity(), Batch(Z, target, weight), "train")["loss"]
    by_hand = expected.mean() if weight is None else (expected * weight).sum() / weight.sum()
    torch.testing.assert_close(loss, by_hand, rtol=0, atol=1e-12)


@pytest.mark.parametrize("convention", ["torch", "others"])
def test_label_smoothing_weighs_every_class(convention):
    objective, eps = CrossEntropy(label_smoothing=0.1, convention=convention), 0.1
    hard = F.one_hot(Y, 3).double()
    spread = eps / 3 if convention == "torch" else (1 - hard) * eps / 2
    soft = hard * (1 - eps) + spread
    expected = -(soft * torch.log_softmax(Z, 1)).sum(dim=1)
    torch.testing.assert_close(objective.rows(Z, Y), expected, rtol=0, atol=1e-12)


def test_the_old_name_of_a_convention_warns_and_means_the_same():
    with pytest.warns(FutureWarning, match="convention='notes' is called 'others'"):
        assert CrossEntropy(label_smoothing=0.1, convention="notes").convention == "others"
    with pytest.warns(FutureWarning, match="smooth_labels: convention='notes' is called 'others'"):
        smoothed = smooth_labels(torch.tensor([0]), 3, 0.1, "notes")
    assert smoothed.equal(smooth_labels(torch.tensor([0]), 3, 0.1, "others"))


def test_an_unknown_convention_is_named():
    with pytest.raises(InvalidParameter, match="`convention` must be 'torch' or 'others'; got 'x'"):
        CrossEntropy(convention="x")


def test_weights_that_are_all_zero_give_zero_not_nan():
    assert weighted_mean(torch.ones(3), torch.zeros(3)).item() == 0


@pytest.mark.parametrize("scale, factor", [("mean", 1 / 3), ("sum", 1), ("half", 0.5)])
@pytest.mark.parametrize("weight", [None, [3.0, 1.0]])
def test_scales_of_the_squared_error_differ_by_constants_and_so_do_their_gradients(
    scale, factor, weight
):
    weight = None if weight is None else torch.tensor(weight, dtype=torch.float64)
    objective, outputs = SquaredError(scale=scale), Z.clone().requires_grad_()
    rows = objective.rows(outputs, T)
    torch.testing.assert_close(rows, factor * (Z - T).square().sum(dim=1))
    loss = weighted_mean(rows, weight)
    (by_autograd,) = torch.autograd.grad(loss, outputs)
    found, by_hand = objective.loss_gradient(Z, Batch(Z, T, weight))
    torch.testing.assert_close(found, loss.detach())
    torch.testing.assert_close(by_hand, by_autograd)


def test_half_the_squared_error_has_the_plain_difference_as_gradient():
    _, gradient = SquaredError(scale="half").loss_gradient(Z[:1], Batch(Z, T[:1]))
    torch.testing.assert_close(gradient, Z[:1] - T[:1])


def test_the_sum_of_squared_errors_is_the_number_of_rows_times_the_loss():
    loss = SquaredError(scale="sum").terms(nn.Identity(), Batch(Z, T), "train")["loss"]
    total = (Z - T).square().sum()
    torch.testing.assert_close(SquaredError(scale="sum").rows(Z, T).sum(), total)
    torch.testing.assert_close(len(Z) * loss, total)


@pytest.mark.parametrize("name", ["AbsoluteError", "BinaryCrossEntropy", "SquaredError"])
def test_targets_of_another_shape_are_refused_not_broadcast(name):
    objective = {"AbsoluteError": AbsoluteError, "SquaredError": SquaredError}.get(
        name, BinaryCrossEntropy
    )()
    said = rf"{name}: targets must have the shape of the outputs, \(2, 1\); got \(2,\)"
    with pytest.raises(ShapeMismatch, match=said):
        objective.rows(Z[:, :1], T[:, 0])


def test_wrong_settings_are_named():
    with pytest.raises(InvalidParameter, match="`scale` must be 'mean', 'sum' or 'half'; got 'n'"):
        SquaredError(scale="n")
    with pytest.raises(InvalidParameter, match="at least 0 and below 1; got 1.5"):
        CrossEntropy(label_smoothing=1.5)


SETTINGS = [(0.0, "torch"), (0.1, "torch"), (0.1, "others")]


@pytest.mark.parametrize("eps, convention", SETTINGS)
def test_a_class_for_every_pixel_is_the_mean_over_flattened_maps(eps, convention):
    source = torch.Generator().manual_seed(0)
    z = torch.randn(2, 3, 4, 5, generator=source, dtype=torch.float64)
    y = torch.randint(3, (2, 4, 5), generator=source)
    objective = CrossEntropy(label_smoothing=eps, convention=convention)
    flat = objective.rows(z.movedim(1, -1).reshape(40, 3), y.reshape(40)).reshape(2, 20).mean(dim=1)
    torch.testing.assert_close(objective.rows(z, y), flat)
    for weight in (None, torch.tensor([3.0, 1.0], dtype=torch.float64)):
        loss = objective.terms(nn.Identity(), Batch(z, y, weight), "train")["loss"]
        torch.testing.assert_close(loss, weighted_mean(flat, weight))


@pytest.mark.parametrize("eps, convention", SETTINGS)
def test_targets_may_be_distributions_over_the_classes(eps, convention):
    soft = torch.tensor([[0.2, 0.3, 0.5], [0.0, 1.0, 0.0]], dtype=torch.float64)
    objective = CrossEntropy(label_smoothing=eps, convention=convention)
    one_hot = F.one_hot(Y, 3).double()
    torch.testing.assert_close(objective.rows(Z, one_hot), objective.rows(Z, Y))
    expected = -(smooth_labels(soft, 3, eps, convention) * torch.log_softmax(Z, 1).float()).sum(1)
    torch.testing.assert_close(objective.rows(Z, soft).float(), expected)
    outputs = Z.clone().requires_grad_()
    loss = objective.terms(nn.Identity(), Batch(outputs, soft), "train")["loss"]
    found, by_hand = objective.loss_gradient(Z, Batch(Z, soft))
    torch.testing.assert_close(found, loss.detach())
    torch.testing.assert_close(by_hand, torch.autograd.grad(loss, outputs)[0])


def test_one_hot_targets_lead_back_to_their_classes():
    codes = torch.tensor([3, 0, 2, 2, 1])
    hot = smooth_labels(codes, 4)
    assert hot.sum(dim=1).tolist() == [1] * 5
    assert set(hot.flatten().tolist()) == {0.0, 1.0}
    assert torch.equal(hot.argmax(dim=1), codes)
