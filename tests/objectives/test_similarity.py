"""Losses on pairs and triplets."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia import Training
from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.nets.dense import MLP
from castalia.objectives import Contrastive, Triplet
from castalia.protocols import Batch
from castalia.testing import train_tensors

SOURCE = torch.Generator().manual_seed(0)
X = torch.randn(12, 3, 4, generator=SOURCE, dtype=torch.float64)
WEIGHT = torch.rand(12, generator=SOURCE, dtype=torch.float64)


@pytest.fixture
def net():
    torch.manual_seed(0)
    return MLP(4, 2, hidden=(5,), activation="tanh").double()


def test_a_triplet_costs_what_the_unlike_one_is_too_near(net):
    a, p, n = (net(X[:, i]) for i in range(3))
    rows = ((a - p).norm(dim=1) - (a - n).norm(dim=1) + 0.5).clamp_min(0)
    loss = Triplet(margin=0.5).terms(net, Batch(X, None, WEIGHT), "train")["loss"]
    assert_close(loss, (rows * WEIGHT).sum() / WEIGHT.sum(), rtol=1e-5, atol=1e-5)


def test_like_pairs_are_drawn_together_and_unlike_ones_pushed_apart(net):
    y = (torch.arange(12) % 2).double()
    d = (net(X[:, 0]) - net(X[:, 1])).norm(dim=1)
    rows = torch.where(y == 1, d**2 / 2, (1.5 - d).clamp_min(0) ** 2 / 2)
    loss = Contrastive(1.5).terms(net, Batch(X[:, :2], y), "train")["loss"]
    assert_close(loss, rows.mean(), rtol=1e-5, atol=1e-5)


def test_micro_batches_make_the_step_of_the_whole_batch(net):
    weights = []
    for accumulate in (1, 3):
        torch.manual_seed(0)
        net = MLP(4, 2, hidden=(5,), activation="tanh").double()
        training = Training(accumulate=accumulate, validation=0)
        train_tensors(net, Triplet(), X, training=training, epochs=3, batch_size=12)
        weights.append(net.layers[0].weight.detach().clone())
    assert_close(weights[0], weights[1])


def test_training_puts_like_things_closer_than_unlike_ones():
    labels = torch.arange(60) % 3
    points = torch.eye(3).double()[labels] + 0.3 * torch.randn(
        60, 3, generator=SOURCE, dtype=torch.float64
    )
    order = torch.arange(60)
    triplets = torch.stack([points, points[(order + 3) % 60], points[(order + 1) % 60]], dim=1)
    net = MLP(3, 2, hidden=(16,)).double()
    train_tensors(net, Triplet(), triplets, epochs=40, lr=0.01)
    a, p, n = (net(triplets[:, i]).detach() for i in range(3))
    assert ((a - p).norm(dim=1) < (a - n).norm(dim=1)).double().mean() > 0.9


def test_rows_that_are_no_triplets_and_useless_margins_are_refused():
    with pytest.raises(ShapeMismatch, match=r"inputs must be \(B, 3, …\).*; got \(12, 2, 4\)"):
        Triplet().terms(nn.Identity(), Batch(X[:, :2]), "train")
    with pytest.raises(InvalidParameter, match="`margin` must be above 0.*; got 0"):
        Contrastive(0)
