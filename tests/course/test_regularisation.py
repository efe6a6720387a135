"""Penalties at work: fewer weights, fewer active units."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import Lasso
from torch import nn
from torch.testing import assert_close

from castalia import Training
from castalia.nets.dense import MLP
from castalia.objectives import L1, L2, ActivationSparsity, Lq, SquaredError
from castalia.testing import train_tensors
from castalia.testing.toys import sine


def test_the_l1_penalty_selects_features_as_the_lasso_does():
    source = torch.Generator().manual_seed(0)
    x = torch.randn(100, 8, generator=source, dtype=torch.float64)
    truth = torch.tensor([3.0, -2.0, 0, 0, 1.0, 0, 0, 0]).double()
    y = (x @ truth)[:, None] + 0.3 * torch.randn(100, 1, generator=source, dtype=torch.float64)
    alphas, kept = (0.01, 0.2, 1.5), []
    for alpha in alphas:
        torch.manual_seed(0)
        net = nn.Linear(8, 1).double()
        training = Training(optimizer="sgd", schedule="linear_decay", validation=0)
        objective = SquaredError(scale="half") + L1(alpha)
        train_tensors(net, objective, x, y, training=training, epochs=300, batch_size=100, lr=0.3)
        lasso = Lasso(alpha=alpha).fit(x.numpy(), y[:, 0].numpy()).coef_
        found = net.weight.detach()[0]
        np.testing.assert_allclose(found.numpy(), lasso, atol=0.02)
        kept.append((found.abs() > 0.02).tolist())
    assert [sum(k) for k in kept] == sorted((sum(k) for k in kept), reverse=True)
    assert sum(kept[0]) > sum(kept[1]) > sum(kept[2])
    assert kept[1] == (truth != 0).tolist()


@pytest.mark.parametrize(
    "penalty, place", [(L1(1.0), (0.5, 0.0)), (L2(1.0), (50 / 101, 5 / 101))], ids=["l1", "l2"]
)
def test_the_smallest_weights_on_a_line_depend_on_the_norm(penalty, place):
    first = torch.linspace(0.3, 0.7, 401, dtype=torch.float64)
    second = 5 - 10 * first  # 10 w1 + w2 = 5
    net = nn.Linear(2, 1, bias=False).double()

    def value(w):
        net.weight.data = torch.stack(w)[None]
        return penalty.value(net).item()

    best = min(zip(first, second, strict=True), key=value)
    assert [w.item() for w in best] == pytest.approx(place, abs=2e-3)
    net.weight.data = torch.tensor([place]).double()
    l1, l2 = L1(1.0).value(net).item(), (2 * L2(1.0).value(net).item()) ** 0.5
    expected = (0.5, 0.5) if place[1] == 0 else (0.5445545, 0.4975186)
    assert (l1, l2) == pytest.approx(expected, abs=1e-7)
    assert Lq(1.0, 2).value(net).item() == pytest.approx(l2**2)


def test_penalised_activations_are_zero_more_often():
    X, y = sine(200)
    x, y = torch.tensor(X), torch.tensor(y)[:, None]
    silent = []
    for alpha in (0.0, 0.01, 0.05):
        torch.manual_seed(0)
        net = MLP(1, 1, hidden=(32,)).double()
        objective = SquaredError() + ActivationSparsity(alpha)
        settings = {"epochs": 30, "batch_size": 50, "lr": 0.02}
        train_tensors(net, objective, x, y, training=Training(validation=0), **settings)
        hidden = torch.relu(net.layers[0](x))
        silent.append((hidden < 0.01).double().mean().item())
    assert silent == sorted(silent)
    assert silent[-1] > silent[0] + 0.2
    assert SquaredError().rows(net(x), y).mean() < 0.5 * y.var()


def test_a_shared_tensor_receives_the_sum_of_the_gradients_of_its_uses():
    torch.manual_seed(0)
    net = MLP(3, 3, hidden=(3,), activation="tanh").double()
    net.layers[2].weight = net.layers[0].weight
    twin = MLP(3, 3, hidden=(3,), activation="tanh").double()
    twin.load_state_dict(net.state_dict())
    x = torch.randn(10, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    SquaredError().rows(twin(x), x).mean().backward()
    expected = twin.layers[0].weight.grad + twin.layers[2].weight.grad
    before = net.layers[0].weight.detach().clone()
    training = Training(optimizer="sgd", validation=0)
    train_tensors(net, SquaredError(), x, x, training=training, batch_size=10, lr=1.0)
    assert_close(before - net.layers[0].weight.detach(), expected)
    assert net.layers[0].weight is net.layers[2].weight
