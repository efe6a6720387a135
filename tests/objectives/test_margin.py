"""Losses of the margin, against scikit-learn's and torch's."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.metrics import hinge_loss, zero_one_loss
from torch import nn
from torch.testing import assert_close

from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.nets.dense import MLP
from castalia.objectives import (
    L2,
    BinaryCrossEntropy,
    Hinge,
    Logistic,
    PerceptronLoss,
    ZeroOne,
    margins,
)
from castalia.protocols import Batch
from castalia.testing import train_tensors

SOURCE = torch.Generator().manual_seed(0)
SCORES = torch.randn(40, 3, generator=SOURCE, dtype=torch.float64)
CODES = torch.randint(3, (40,), generator=SOURCE)
M = torch.linspace(-3, 3, 61, dtype=torch.float64)


def test_the_hinge_at_margins_from_minus_one_to_two():
    assert Hinge().of_margin(torch.tensor([-1.0, 0, 1, 2])).tolist() == [2, 1, 0, 0]
    assert Hinge(squared=True).of_margin(torch.tensor([-1.0, 0, 1, 2])).tolist() == [4, 1, 0, 0]


@pytest.mark.parametrize("no", [0.0, -1.0])
@pytest.mark.parametrize(
    "loss", [Hinge(), Logistic(), PerceptronLoss()], ids=["hinge", "logistic", "perceptron"]
)
def test_no_is_zero_or_minus_one_and_the_shape_of_y_does_not_matter(loss, no):
    score, yes = SCORES[:, :1], CODES == 1
    expected = loss.of_margin(torch.where(yes, 1, -1) * score[:, 0])
    signs = torch.where(yes, 1.0, no).double()
    assert_close(loss.rows(score, signs[:, None]), expected)
    assert_close(loss.rows(score, signs), expected)
    assert_close(loss.rows(score, signs.long()), expected)


def test_logistic_is_the_binary_cross_entropy_and_lies_above_the_zero_one_loss():
    y = (CODES == 1).double()[:, None]
    assert_close(Logistic().rows(SCORES[:, :1], y), BinaryCrossEntropy().rows(SCORES[:, :1], y))
    assert_close(Logistic().of_margin(M), torch.log1p(torch.exp(-M)))
    wrong = (M <= 0).double()
    assert (Logistic().of_margin(M) / math.log(2) >= wrong - 1e-12).all()
    assert (Hinge().of_margin(M) >= wrong).all()


def test_one_against_the_rest_sums_a_margin_for_each_output():
    signs = 2 * F.one_hot(CODES, 3) - 1
    assert_close(margins(SCORES, CODES), signs * SCORES)
    assert_close(Hinge().rows(SCORES, CODES), (1 - signs * SCORES).clamp_min(0).sum(dim=1))
    # A dot product of targets and outputs would let a good output hide a bad one.
    outputs = torch.tensor([[5.0, -2.0]])
    assert Hinge().rows(outputs, torch.tensor([[1.0, 1.0]])).item() == 3.0


def test_crammer_and_singers_hinge_is_scikit_learns_and_torchs():
    rows = Hinge(multiclass="crammer_singer").rows(SCORES, CODES)
    expected = hinge_loss(CODES.numpy(), SCORES.numpy(), labels=[0, 1, 2])
    assert rows.mean().item() == pytest.approx(expected, abs=1e-12)
    lead = margins(SCORES, CODES, "crammer_singer")
    assert lead.shape == (40, 1)
    assert_close(lead.squeeze(1) > 0, SCORES.argmax(dim=1) == CODES)


def test_a_step_on_the_perceptron_loss_is_the_perceptron_rule_even_from_zero():
    net = nn.Linear(2, 1).double()
    for p in net.parameters():
        nn.init.zeros_(p)
    x = torch.tensor([[1.0, -2.0]], dtype=torch.float64)
    batch = Batch(x, torch.tensor([[-1.0]], dtype=torch.float64))
    PerceptronLoss().terms(net, batch, "train")["loss"].backward()
    assert_close(-net.weight.grad, -x)  # w <- w + y x
    assert net.bias.grad.item() == 1.0


def test_the_zero_one_loss_counts_mistakes():
    found = ZeroOne().rows(SCORES, CODES)
    answers = SCORES.argmax(dim=1).numpy()
    assert found.mean().item() == pytest.approx(zero_one_loss(CODES.numpy(), answers))
    y = (CODES == 1).long()
    binary = ZeroOne().rows(SCORES[:, :1], y)
    assert binary.sum().item() == np.sum((SCORES[:, 0].numpy() > 0) != y.numpy())
    labels = torch.tensor([[1.0, 0.0, 1.0, 1.0]])
    assert ZeroOne().rows(torch.tensor([[2.0, 1.0, 0.5, 3.0]]), labels).item() == 0.25
    loss = ZeroOne().terms(nn.Identity(), Batch(SCORES, CODES), "train")["loss"]
    assert loss.item() == pytest.approx(found.mean().item())


@pytest.mark.parametrize("objective", [ZeroOne(), ZeroOne() + L2(0.1)], ids=["alone", "penalised"])
def test_nobody_trains_with_the_zero_one_loss(objective):
    with pytest.raises(InvalidParameter, match=r"must have a gradient.* Train with Hinge\(\)"):
        train_tensors(MLP(3, 3).double(), objective, SCORES, CODES)


def test_targets_that_fit_no_rule_are_named():
    with pytest.raises(
        ShapeMismatch, match=r"codes \(40,\) or signs .* \(40, 3\); got torch.float"
    ):
        Hinge().rows(SCORES, CODES.double())
    with pytest.raises(InvalidParameter, match="`multiclass` must be .*; got 'ovr'"):
        Hinge(multiclass="ovr")


def test_the_margin_losses_train_a_network():
    y = (SCORES[:, 0] - SCORES[:, 1] > 0).long()
    for loss in (Hinge(), Logistic(), PerceptronLoss(), Hinge(multiclass="crammer_singer")):
        torch.manual_seed(0)
        net = MLP(3, 2, hidden=()).double()
        train_tensors(net, loss, SCORES, y, epochs=60, batch_size=10, lr=0.05)
        assert ZeroOne().rows(net(SCORES), y).mean() < 0.1
