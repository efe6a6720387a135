"""Layers with missing connections."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia import Training
from castalia.errors import InvalidData, ShapeMismatch
from castalia.nets.dense import MLP
from castalia.nn import SparseLinear
from castalia.objectives import L2, SquaredError
from castalia.testing import train_tensors

MASK = torch.tensor([[1.0, 0, 0], [1, 1, 0], [0, 1, 1], [0, 0, 0]])
SOURCE = torch.Generator().manual_seed(0)
X = torch.randn(40, 3, generator=SOURCE, dtype=torch.float64)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_missing_weights_stay_exactly_zero_and_the_others_learn(optimizer):
    torch.manual_seed(0)
    net = MLP(3, 1, hidden=(4,), activation="tanh")
    net.layers[0] = SparseLinear(MASK)
    net = net.double()
    before = net.layers[0].weight.detach().clone()
    training = Training(optimizer=optimizer, weight_decay=0.01, validation=0)
    objective = SquaredError() + L2(0.01)
    train_tensors(net, objective, X, X.prod(dim=1, keepdim=True), training=training, epochs=5)
    after = net.layers[0].weight.detach()
    assert after[MASK == 0].eq(0).all()
    assert before[MASK == 0].eq(0).all()
    assert after[MASK == 1].ne(before[MASK == 1]).all()


def test_an_output_depends_on_the_inputs_it_is_joined_to_alone():
    layer = SparseLinear(MASK).double()
    jacobian = torch.autograd.functional.jacobian(layer, X[0])
    assert_close(jacobian.ne(0), MASK.bool())
    full = SparseLinear(torch.ones(4, 3)).double()
    assert_close(full(X), nn.functional.linear(X, full.weight, full.bias))


def test_weights_start_by_the_number_of_connections():
    torch.manual_seed(0)
    mask = torch.zeros(1000, 400)
    mask[:, :25] = 1
    largest = SparseLinear(mask).weight.abs().max().item()
    assert 0.19 < largest <= 0.2 + 1e-6  # 1 / sqrt(25)


def test_a_mask_that_is_none_is_refused():
    with pytest.raises(ShapeMismatch, match=r"must be \(outputs, inputs\); got \(3,\)"):
        SparseLinear(torch.ones(3))
    with pytest.raises(InvalidData, match="must hold only 0 and 1"):
        SparseLinear(torch.full((2, 2), 0.5))
