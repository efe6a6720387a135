"""Classes by their means, starts by their pull, functions by their codes."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia import (
    MAML,
    ConvNetClassifier,
    MLPClassifier,
    NeuralProcess,
    ProtoNet,
    Reptile,
    Training,
)
from castalia.data.augment import Flip
from castalia.errors import InvalidData
from castalia.models.meta.latent_neural_process import LatentLikelihood
from castalia.models.meta.prototype_network import PrototypeLoss, prototype_scores
from castalia.models.meta.reptile import TaskPull
from castalia.models.meta.starting_weights import adapted, task_loss
from castalia.nets.meta import LatentProcess
from castalia.objectives import SquaredError
from castalia.protocols import Batch
from castalia.testing.toys import stripes, waves

HALF = SquaredError(scale="half")
NET = MLPClassifier(hidden=(32,), training=Training(validation=0))


def test_scores_are_squared_distances_and_right_codes_cost_nothing():
    codes, means = torch.randn(7, 3), torch.randn(4, 3)
    assert_close(prototype_scores(codes, means), -(torch.cdist(codes, means) ** 2))
    x = 20 * torch.eye(4)[:, None].expand(4, 6, 4)  # every class in a corner of its own
    terms = PrototypeLoss(2, 3).terms(nn.Identity(), Batch(x), "train")
    assert terms["accuracy"] == 1
    assert terms["loss"] < 1e-6
    alike = PrototypeLoss(2, 3).terms(nn.Identity(), Batch(torch.zeros(4, 6, 4)), "train")
    assert alike["loss"] == pytest.approx(np.log(4))


def spokes(classes, n, seed):
    """Rows whose class is an angle, in two of ten columns; the others are large noise."""
    random = np.random.default_rng(seed)
    angle = np.repeat(random.uniform(0, 2 * np.pi, classes), n)
    X = 5 * random.normal(size=(classes * n, 10))
    X[:, 0], X[:, 1] = np.cos(angle), np.sin(angle)
    X[:, :2] += 0.05 * random.normal(size=(classes * n, 2))
    return X, np.repeat(np.arange(classes), n)


def test_classes_that_were_never_seen_are_known_by_a_few_rows():
    model = ProtoNet(NET, shots=3, ways=10, epochs=60, lr=3e-3, random_state=0)
    model.fit(*spokes(60, 12, 0))
    X, y = spokes(5, 20, 1)
    known = np.arange(100) % 20 < 3
    new = model.adapt(X[known], y[known])
    centres = np.stack([X[known][y[known] == k].mean(axis=0) for k in range(5)])
    nearest = ((X[~known][:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    assert new.score(X[~known], y[~known]) > np.mean(nearest == y[~known]) + 0.3
    assert new.classes_.tolist() == [0, 1, 2, 3, 4]
    assert len(model.classes_) == 60  # the old one is as it was
    with pytest.raises(InvalidData, match="a new task must have two classes or more; got 1"):
        model.adapt(X[y == 0], y[y == 0])


def test_images_have_prototypes_too():
    X, y = stripes(60)
    net = ConvNetClassifier(widths=(4,), training=Training(validation=0))
    model = ProtoNet(net, dim=4, shots=2, queries=2, epochs=2, random_state=0).fit(X, y)
    assert model.prototypes_.shape == (len(np.unique(y)), 4)
    assert model.predict(X[:3]).shape == (3,)


class Blank(Flip):
    """Nothing is left of an image."""

    def __call__(self, x, y=None, *, generator=None):
        return 0 * x, y


@pytest.mark.parametrize("kind", [ProtoNet, MAML])
def test_episodes_are_drawn_from_views_as_the_estimator_asks_for(kind):
    X, y = stripes(24)
    net = ConvNetClassifier(widths=(4,), batch_norm="own", augment=Blank())
    model = kind(net, shots=1, ways=3, queries=2, epochs=2, random_state=0).fit(X, y)
    assert model.estimator_.history_[-1]["loss"] == pytest.approx(np.log(3), abs=0.01)
    rows = [np.flatnonzero(y == k)[0] for k in range(3)]
    assert len(model.adapt(X[rows], y[rows]).predict(X[:5])) == 5


def test_a_step_of_reptile_goes_towards_the_weights_of_the_tasks():
    net = nn.Linear(2, 1, bias=False).double()
    x, y = torch.randn(3, 4, 2, dtype=torch.float64), torch.randn(3, 4, 1, dtype=torch.float64)
    TaskPull(HALF, 4, 0.1, 2).terms(net, Batch(x, y), "train")["loss"].backward()
    start = {"weight": net.weight.detach()}
    losses = [task_loss(net, HALF, a, b) for a, b in zip(x, y, strict=True)]
    ends = [adapted(loss, start, 0.1, 2)["weight"] for loss in losses]
    assert_close(net.weight.grad, start["weight"] - torch.stack(ends).mean(dim=0))


def test_reptile_learns_new_waves_sooner_than_a_random_start():
    settings = {"inner_lr": 0.2, "inner_steps": 3, "tasks": 20, "random_state": 0}
    model = Reptile(epochs=40, lr=2e-2, **settings).fit(*waves())
    fresh = Reptile(epochs=1, lr=1e-9, **settings).fit(*waves())
    unseen = waves(seed=1)
    assert model.score(*unseen) > fresh.score(*unseen) + 0.2


def test_the_evidence_bound_is_that_of_its_formula_and_no_context_is_the_prior():
    net = LatentProcess(1, 1, hidden=4).double()
    x, y = torch.randn(2, 5, 1, dtype=torch.float64), torch.randn(2, 5, 1, dtype=torch.float64)
    torch.manual_seed(0)
    terms = LatentLikelihood(0).terms(net, Batch(x, y), "train")
    torch.manual_seed(0)
    torch.randperm(5), torch.randint(1, ())
    code = net.code(x, y)
    mean, scale = net(code.rsample(), x)
    density = -0.5 * ((y - mean) / scale) ** 2 - scale.log() - 0.5 * np.log(2 * np.pi)
    m, s = code.mean, code.stddev
    divergence = (0.5 * (m**2 + s**2 - 1) - s.log()).sum(dim=1)
    assert_close(terms["divergence"], divergence.mean())
    assert_close(terms["loss"], -(density.sum(dim=(1, 2)) - divergence).mean() / 5)


def test_drawn_functions_agree_more_where_more_points_are_known():
    X, y = waves()
    model = NeuralProcess(hidden=32, epochs=100, tasks=40, lr=5e-3, random_state=0).fit(X, y)
    new_x, new_y = waves(1, seed=7)
    spreads = [
        model.adapt(new_x[0, :n], new_y[0, :n]).sample(new_x[0], 40).std(axis=0).mean()
        for n in (0, 8)
    ]
    assert spreads[1] < 0.8 * spreads[0]
    mean, std = model.predict(new_x[0], return_std=True)
    assert mean.shape == std.shape == (16,)
