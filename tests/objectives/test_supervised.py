"""Losses against torch's own and against the formula."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from castalia.errors import InvalidParameter
from castalia.objectives import (
    AbsoluteError,
    BinaryCrossEntropy,
    CrossEntropy,
    SquaredError,
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


@pytest.mark.parametrize("convention", ["torch", "notes"])
def test_label_smoothing_weighs_every_class(convention):
    objective, eps = CrossEntropy(label_smoothing=0.1, convention=convention), 0.1
    hard = F.one_hot(Y, 3).double()
    spread = eps / 3 if convention == "torch" else (1 - hard) * eps / 2
    soft = hard * (1 - eps) + spread
    expected = -(soft * torch.log_softmax(Z, 1)).sum(dim=1)
    torch.testing.assert_close(objective.rows(Z, Y), expected, rtol=0, atol=1e-12)


def test_an_unknown_convention_is_named():
    with pytest.raises(InvalidParameter, match="`convention` must be 'torch' or 'notes'; got 'x'"):
        CrossEntropy(convention="x")


def test_weights_that_are_all_zero_give_zero_not_nan():
    assert weighted_mean(torch.ones(3), torch.zeros(3)).item() == 0
