"""Norm penalties and weight decay."""

import pytest
import torch
from torch import nn

from castalia import Training
from castalia.objectives import L1, L2, SquaredError
from castalia.testing import train_tensors

X = torch.randn(20, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
Y = X.sum(dim=1, keepdim=True)


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).double()


def matrices(net):
    return [p for p in net.parameters() if p.ndim == 2]


@pytest.mark.parametrize(
    "penalty, power, factor",
    [(L2(0.3), 2, 0.15), (L2(0.3, half=False), 2, 0.3), (L1(0.3), 1, 0.3)],
    ids=["l2", "l2 whole", "l1"],
)
def test_the_value_is_the_formula_over_weight_matrices(penalty, power, factor):
    net = network()
    by_hand = factor * sum(float(w.detach().abs().pow(power).sum()) for w in matrices(net))
    assert penalty.value(net).item() == pytest.approx(by_hand, abs=1e-12)


@pytest.mark.parametrize("penalty", [L1(0.3), L2(0.3)], ids=["l1", "l2"])
def test_biases_are_exempt(penalty):
    net = network()
    penalty.value(net).backward()
    assert [p.grad is not None for p in net.parameters()] == [True, False, True, False]


def test_the_gradient_of_l2_is_alpha_w_and_of_l1_alpha_sign_w():
    for penalty, expected in ((L2(0.3), lambda w: 0.3 * w), (L1(0.3), lambda w: 0.3 * w.sign())):
        net = network()
        penalty.value(net).backward()
        for w in matrices(net):
            torch.testing.assert_close(w.grad, expected(w.detach()), rtol=0, atol=1e-14)


def test_a_frozen_matrix_is_not_penalised():
    net = network()
    net[0].weight.requires_grad_(False)
    expected = 0.5 * float(net[2].weight.detach().square().sum())
    assert L2(1.0).value(net).item() == pytest.approx(expected)


def test_decay_in_plain_sgd_takes_the_step_of_the_l2_penalty():
    found = []
    for objective, decay in ((SquaredError() + L2(0.2), 0.0), (SquaredError(), 0.2)):
        net = network()
        training = Training(optimizer="sgd", weight_decay=decay, validation=0)
        train_tensors(net, objective, X, Y, training=training, epochs=5, lr=0.1)
        found.append(torch.cat([p.detach().flatten() for p in net.parameters()]))
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=1e-12)
    assert not torch.equal(found[0][0], network()[0].weight.detach().flatten()[0])


def test_penalties_add_up_and_are_shown_beside_the_loss():
    net = network()
    training = Training(validation=0)
    state = train_tensors(
        net, SquaredError() + L1(0.1) + L2(0.1), X, Y, training=training, batch_size=20, lr=1e-12
    )
    line, fresh = state.history[0], network()
    with torch.no_grad():
        error = float((fresh(X) - Y).square().mean())
    assert line["l1"] == pytest.approx(L1(0.1).value(fresh).item(), abs=1e-9)
    assert line["l2"] == pytest.approx(L2(0.1).value(fresh).item(), abs=1e-9)
    assert line["loss"] == pytest.approx(error + line["l1"] + line["l2"], abs=1e-9)


def test_l1_drives_useless_weights_to_nearly_zero_and_l2_does_not():
    random = torch.Generator().manual_seed(0)
    x = torch.randn(300, 5, dtype=torch.float64, generator=random)
    y = 2 * x[:, :1] + 0.1 * torch.randn(300, 1, dtype=torch.float64, generator=random)
    small = {}
    for name, penalty in (("l1", L1(0.4)), ("l2", L2(0.4))):
        net = nn.Linear(5, 1).double()
        training = Training(optimizer="sgd", validation=0)
        objective = SquaredError() + penalty
        train_tensors(net, objective, x, y, training=training, epochs=150, batch_size=300, lr=0.05)
        small[name] = float(net.weight.detach()[0, 1:].abs().sum())
        assert abs(net.weight[0, 0].item()) > 1
    assert small["l1"] < 0.06
