"""Norm penalties and weight decay."""

import pytest
import torch
from torch import nn

from castalia import Training
from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.objectives import L1, L2, Lq, SquaredError, Tied
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


def test_lq_is_l1_and_l2_at_one_and_two():
    net = network()
    for found, expected in ((Lq(0.3, 1), L1(0.3)), (Lq(0.3, 2, half=True), L2(0.3))):
        torch.testing.assert_close(found.value(net), expected.value(net))
    by_hand = 0.3 * sum(w.detach().abs().pow(1.5).sum() for w in matrices(net))
    assert Lq(0.3, 1.5).value(net).item() == pytest.approx(by_hand.item())


@pytest.mark.parametrize("q", [0.5, 1.0, 1.5, 3.0])
def test_the_gradient_of_lq_is_finite_at_zero(q):
    net = nn.Linear(3, 1, bias=False).double()
    net.weight.data = torch.tensor([[0.0, -2.0, 0.25]]).double()
    Lq(1.0, q).value(net).backward()
    w = torch.tensor([-2.0, 0.25]).double()
    torch.testing.assert_close(net.weight.grad[0, 1:], q * w.abs() ** (q - 1) * w.sign())
    assert net.weight.grad[0, 0].item() == 0
    assert Lq(1.0, q).value(net).item() == pytest.approx(2**q + 0.25**q)


@pytest.mark.parametrize("penalty", [L1(0.1), L2(0.1), Lq(0.1, 3)], ids=["l1", "l2", "lq"])
def test_a_network_without_matrices_has_no_penalty(penalty):
    assert penalty.value(nn.BatchNorm1d(3)).item() == 0


class Two(nn.Module):
    """Two models side by side, and their outputs beside each other."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.a, self.b = nn.Linear(3, 1).double(), nn.Linear(3, 1).double()

    def forward(self, x):
        return torch.cat([self.a(x), self.b(x)], dim=1)

    def distance(self):
        gaps = zip(self.a.parameters(), self.b.parameters(), strict=True)
        return float(sum((p - q).detach().square().sum() for p, q in gaps))


def test_tying_penalises_the_squared_distance_of_all_parameters():
    net = Two()
    assert Tied("a", "b", alpha=0.3).value(net).item() == pytest.approx(0.3 * net.distance())
    Tied("a", "b").value(net).backward()
    torch.testing.assert_close(net.a.weight.grad, 2 * (net.a.weight - net.b.weight).detach())
    torch.testing.assert_close(net.b.bias.grad, -net.a.bias.grad)


def test_a_stronger_tie_brings_two_models_closer_and_none_leaves_them_alone():
    targets = torch.cat([Y, X[:, :1] - X[:, 1:2]], dim=1)
    ends = []
    for alpha in (0.0, 0.3, 5.0):
        net = Two()
        objective = SquaredError(scale="sum") + Tied("a", "b", alpha=alpha)
        training = Training(optimizer="sgd", validation=0)
        train_tensors(
            net, objective, X, targets, training=training, epochs=120, batch_size=20, lr=0.04
        )
        ends.append(net)
    distances = [net.distance() for net in ends]
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] < 0.02 * distances[0]
    alone = Two()
    training = Training(optimizer="sgd", validation=0)
    train_tensors(
        alone.a, SquaredError(), X, Y, training=training, epochs=120, batch_size=20, lr=0.04
    )
    torch.testing.assert_close(ends[0].a.weight, alone.a.weight)


def test_a_model_outside_is_held_fixed():
    net, anchor = network(), network()
    anchor[0].weight.data += 1.0
    penalty = Tied("", anchor, alpha=0.5)
    value = penalty.value(net)
    assert value.item() == pytest.approx(0.5 * 12)
    value.backward()
    assert all(p.grad is None for p in anchor.parameters())
    torch.testing.assert_close(net[0].weight.grad, torch.full((4, 3), -1.0).double())


def test_parts_that_cannot_be_tied_are_named():
    with pytest.raises(InvalidParameter, match="a part must be `a` or `b`; got 'c'"):
        Tied("a", "c").value(Two())
    with pytest.raises(ShapeMismatch, match=r"'weight': \(4, 3\).*'weight': \(1, 4\)"):
        Tied("0", "2").value(network())
    with pytest.raises(InvalidParameter, match="`q` must be above 0; got 0"):
        Lq(0.1, 0)
