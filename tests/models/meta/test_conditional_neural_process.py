"""Functions from their points: blind to order, surer with more of them."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from castalia import Training
from castalia.errors import InvalidData
from castalia.models.meta import AttentiveNeuralProcess, ConditionalNeuralProcess
from castalia.nets.meta import NeuralProcess


@pytest.mark.parametrize("heads", [0, 2])
def test_the_order_of_the_context_does_not_matter(heads):
    net = NeuralProcess(2, 1, hidden=8, heads=heads).eval()
    x, y, at = torch.randn(3, 6, 2), torch.randn(3, 6, 1), torch.randn(3, 4, 2)
    order = torch.randperm(6)
    for one, other in zip(net(x, y, at), net(x[:, order], y[:, order], at), strict=True):
        assert_close(one, other, atol=1e-5, rtol=1e-5)


def test_a_target_point_does_not_depend_on_the_others():
    net = NeuralProcess(1, 1, hidden=8, heads=2).eval()
    x, y, at = torch.randn(1, 5, 1), torch.randn(1, 5, 1), torch.randn(1, 4, 1)
    assert_close(net(x, y, at)[0][:, :1], net(x, y, at[:, :1])[0], atol=1e-6, rtol=1e-5)


def test_points_of_another_width_or_without_their_values_are_refused():
    x, y, task = lines(3, 4, 0)
    model = ConditionalNeuralProcess(hidden=4, epochs=1, random_state=0).fit(x, y, groups=task)
    with pytest.raises(ValueError, match="X has 2 features, but ConditionalNeuralProcess"):
        model.adapt(np.ones((4, 2)), y[:4])
    with pytest.raises(InvalidData, match="must have the same number of rows; got 4 and 3"):
        model.adapt(x[:4], y[:3])
    with pytest.raises(InvalidData, match="NaN"):
        model.adapt(x[:2], [1.0, np.nan])


def lines(tasks, points, seed):
    random = np.random.default_rng(seed)
    x = random.uniform(-2, 2, (tasks, points))
    slope, level = random.normal(size=(2, tasks, 1))
    y = 20 * (slope * x + level + 0.05 * random.normal(size=x.shape))
    return x.reshape(-1, 1), y.ravel(), np.repeat(np.arange(tasks), points)


@pytest.mark.parametrize("kind", [ConditionalNeuralProcess, AttentiveNeuralProcess])
def test_the_likelihood_of_new_functions_rises_with_the_context(kind):
    settings = {"hidden": 32, "epochs": 30, "tasks": 20, "lr": 3e-3, "random_state": 0}
    model = kind(training=Training(validation=0), **settings).fit(*lines(120, 12, 0))
    x, y, task = lines(30, 20, 1)

    def likelihood(points):
        found = []
        for t in range(30):
            rows = np.flatnonzero(task == t)
            known, other = rows[:points], rows[10:]
            found.append(model.adapt(x[known], y[known]).log_likelihood(x[other], y[other]))
        return np.mean(found)

    none, two, many = (likelihood(points) for points in (0, 2, 8))
    assert none < two < many
    mean, spread = model.predict(x, return_std=True)  # of no function in particular
    assert 0.3 < np.mean(((y - mean) / spread) ** 2) < 3
