"""What is left of the first task after the second."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia import ContinualLearning, MLPClassifier, MLPRegressor, Training
from castalia.models.strategies.task_sequence import ElasticWeights, fisher_information
from castalia.objectives import CrossEntropy
from castalia.protocols import Batch
from castalia.testing.toys import moons, sine

NET = MLPClassifier(hidden=(32,), epochs=25, lr=0.03, training=Training(validation=0))


def test_replay_and_elastic_weights_forget_less_than_neither():
    X, y = moons(300)
    halves = (X[:, 0] > 0.5).astype(int)
    found = {
        method: ContinualLearning(NET, method=method, random_state=0).fit(X, y, groups=halves)
        for method in ("naive", "replay", "ewc")
    }
    lost = {method: model.backward_transfer_ for method, model in found.items()}
    assert lost["naive"] < -0.08
    assert lost["replay"] > lost["naive"] + 0.05
    assert lost["ewc"] > lost["naive"] + 0.02
    table = found["naive"].table_
    assert lost["naive"] == pytest.approx(table[1, 0] - table[0, 0])


def test_the_fisher_information_of_a_logistic_model_is_its_closed_form():
    net = nn.Linear(3, 2, bias=False).double()
    x, y = torch.randn(5, 3, dtype=torch.float64), torch.tensor([0, 1, 1, 0, 1])
    p = torch.softmax(net(x), dim=1)
    gap = (p - nn.functional.one_hot(y, 2)).detach()
    expected = (gap[:, :, None] * x[:, None]).square().mean(dim=0)
    found = fisher_information(net, CrossEntropy(), [Batch(x, y)])
    assert_close(found["weight"], expected)


def test_a_weight_that_matters_is_held_more():
    net = nn.Linear(2, 1, bias=False)
    net.weight.data = torch.tensor([[1.0, 1.0]])
    fisher, kept = {"weight": torch.tensor([[4.0, 0.0]])}, {"weight": torch.zeros(1, 2)}
    ElasticWeights([(fisher, kept)], 0.5).value(net).backward()
    assert_close(net.weight.grad, torch.tensor([[2.0, 0.0]]))


def test_tasks_come_in_the_order_of_their_first_rows_and_may_be_regressions():
    X, y = sine(90)
    groups = np.repeat(["late", "early", "last"], 30)
    net = MLPRegressor(hidden=(8,), epochs=3, lr=0.02, training=Training(validation=0))
    model = ContinualLearning(net, memory=5, random_state=0).fit(X, y, groups=groups)
    assert model.tasks_.tolist() == ["late", "early", "last"]
    assert model.table_.shape == (3, 3)
