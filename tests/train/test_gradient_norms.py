"""The norm of the gradient, step by step."""

import pytest
import torch
from torch import nn

from castalia import Training
from castalia.objectives import SquaredError
from castalia.testing import train_tensors
from castalia.train import GradientNorms

X = torch.randn(40, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def watch(lr, *, epochs=10, **own):
    found, net = GradientNorms(), nn.Linear(3, 1).double()
    nn.init.zeros_(net.weight)
    nn.init.zeros_(net.bias)
    training = Training(optimizer="sgd", callbacks=[found], **own)
    train_tensors(
        net, SquaredError(), X, X[:, :1] * 3, training=training, epochs=epochs, lr=lr, batch_size=8
    )
    return found


def test_there_is_one_norm_a_step_and_the_first_is_that_of_the_gradient():
    x, found, net = X[:8], GradientNorms(), nn.Linear(3, 1).double()
    twin = nn.Linear(3, 1).double()
    twin.load_state_dict(net.state_dict())
    (twin(x) - 3).square().mean().backward()
    training = Training(callbacks=[found], clip=0.001)
    train_tensors(
        net, SquaredError(), x, torch.full((8, 1), 3.0).double(), training=training, epochs=4
    )
    assert len(found.norms) == 4  # batches of 16: one a epoch
    expected = torch.cat([p.grad.flatten() for p in twin.parameters()]).norm()
    assert found.norms[0] == pytest.approx(expected.item())


def test_the_series_has_the_length_of_the_training_and_tells_rest_from_growth():
    assert len(watch(0.1).norms) == 10 * 5
    assert watch(0.1).trend() == "falling"
    assert watch(1e-5).trend() == "flat"
    assert watch(1.2).trend() == "growing"


def test_the_running_mean_is_over_the_last_steps():
    found = GradientNorms()
    found.norms = [1.0, 3.0, 5.0, 7.0]
    assert found.means(window=2) == [1.0, 2.0, 4.0, 6.0]
    assert found.means(window=9) == [1.0, 2.0, 3.0, 4.0]
