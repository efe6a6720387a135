"""Attacks on networks whose worst case is known, and training against them."""

import itertools

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from castalia import MLPClassifier, Training
from castalia.errors import InvalidData, InvalidParameter
from castalia.objectives import L2, Adversarial, CrossEntropy, SquaredError, fgsm, pgd
from castalia.protocols import Batch
from castalia.testing import train_tensors
from castalia.testing.toys import moons


def linear(seed=0, inputs=6):
    torch.manual_seed(seed)
    return nn.Linear(inputs, 2).double(), torch.randn(7, inputs).double(), torch.arange(7) % 2


def losses(net, x, y):
    return CrossEntropy().rows(net(x), y)


def test_the_gradient_sign_reaches_the_worst_corner_of_the_cube_for_a_linear_model():
    net, x, y = linear()
    found = losses(net, fgsm(net, CrossEntropy(), x, y, eps=0.3), y)
    corners = torch.tensor(list(itertools.product((-0.3, 0.3), repeat=6))).double()
    worst = torch.stack([losses(net, x + corner, y) for corner in corners]).amax(dim=0)
    assert_close(found, worst)
    gap = net.weight[0] - net.weight[1]  # a row's margin falls by eps times its 1-norm
    signs = torch.where(y == 0, 1.0, -1.0).double()
    margins = signs * (net(x)[:, 0] - net(x)[:, 1]) - 0.3 * gap.abs().sum()
    assert_close(found, F.softplus(-margins))


@pytest.mark.parametrize("norm", ["inf", "l2"])
def test_repeated_projected_steps_reach_the_worst_point_of_the_ball(norm):
    net, x, y = linear()
    found = pgd(net, CrossEntropy(), x, y, 0.3, norm=norm, steps=20, step=1.0)
    gap = net.weight[0] - net.weight[1]
    length = gap.abs().sum() if norm == "inf" else gap.norm()
    signs = torch.where(y == 0, 1.0, -1.0).double()
    margins = signs * (net(x)[:, 0] - net(x)[:, 1]) - 0.3 * length
    assert_close(losses(net, found, y), F.softplus(-margins))


@pytest.mark.parametrize("norm", ["inf", "l2"])
def test_results_stay_in_the_ball_and_inside_the_limits(norm):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(2, 4, 3), nn.Tanh(), nn.Flatten(), nn.Linear(64, 3))
    x, y = torch.rand(5, 2, 6, 6), torch.arange(5) % 3
    found = pgd(net, CrossEntropy(), x, y, 0.4, norm=norm, limits=(0, 1))
    change = (found - x).flatten(1)
    assert change.norm(p=float("inf") if norm == "inf" else 2, dim=1).max() <= 0.4 + 1e-6
    assert found.min() >= 0
    assert found.max() <= 1
    assert (losses(net, found, y) > losses(net, x, y)).all()
    one = fgsm(net, CrossEntropy(), x, y, 0.4, limits=(0, 1))
    assert one.min() >= 0
    assert one.max() <= 1
    assert (one - x).abs().max() <= 0.4 + 1e-6


@pytest.mark.parametrize("attack", [fgsm, pgd], ids=["fgsm", "pgd"])
def test_a_targeted_attack_lowers_the_loss_of_the_target(attack):
    net, x, y = linear()
    found = attack(net, CrossEntropy(), x, 1 - y, 2.0, targeted=True)
    assert (losses(net, found, 1 - y) < losses(net, x, 1 - y)).all()
    assert (net(found).argmax(dim=1) == 1 - y).all()


def test_an_attack_leaves_no_trace_in_the_network():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 2))
    net[1].eval()
    x, y = torch.randn(6, 3), torch.zeros(6, dtype=torch.long)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    with torch.no_grad():
        first, second = (fgsm(net, CrossEntropy(), x, y, 0.1) for _ in range(2))
        pgd(net, CrossEntropy(), x, y, 0.1)
    assert_close(first, second, rtol=0, atol=0)  # dropout is off
    assert [m.training for m in net] == [True, False, True, True]
    assert all(p.grad is None for p in net.parameters())
    assert not first.requires_grad
    assert not x.requires_grad
    for name, value in net.state_dict().items():
        assert_close(value, before[name], rtol=0, atol=0)


def test_a_plain_loss_function_will_do():
    net, x, y = linear()
    ours = fgsm(net, CrossEntropy(), x, y, 0.1)
    assert_close(fgsm(net, F.cross_entropy, x, y, 0.1), ours)


def test_the_start_is_drawn_from_the_given_generator():
    net, x, y = linear()
    net = nn.Sequential(net, nn.Tanh())

    def attack(seed):
        source = torch.Generator().manual_seed(seed)
        return pgd(net, CrossEntropy(), x, y, 0.5, steps=1, norm="l2", generator=source)

    assert_close(attack(0), attack(0), rtol=0, atol=0)
    assert not torch.equal(attack(0), attack(1))
    calm = [pgd(net, CrossEntropy(), x, y, 0.5, random_start=False) for _ in range(2)]
    assert_close(*calm, rtol=0, atol=0)


def test_inputs_that_are_codes_stay_as_they_are():
    torch.manual_seed(0)
    table = nn.Embedding(3, 2)

    class Net(nn.Module):
        def forward(self, x):
            return x[:, :2] + table(x[:, 2].long())

    x, y = torch.tensor([[0.1, 0.2, 1.0], [0.5, 0.1, 2.0]]), torch.tensor([0, 1])
    for found in (
        fgsm(Net(), CrossEntropy(), x, y, 0.1),
        pgd(Net(), CrossEntropy(), x, y, 0.1, random_start=False),
    ):
        assert found[:, 2].tolist() == [1.0, 2.0]
        assert not torch.equal(found[:, :2], x[:, :2])


def test_a_fitted_estimator_is_attacked_through_its_module():
    X, y = moons(300)
    model = MLPClassifier(hidden=(32,), epochs=60, lr=0.01, random_state=0).fit(X, y)
    x = model.adapter_.rows(X, np.float32).take(torch.arange(300))
    codes = torch.from_numpy(y)
    worse = fgsm(model.module_, CrossEntropy(), x, codes, 0.3)
    clean, attacked = ((model.module_(v).argmax(dim=1) == codes).float().mean() for v in (x, worse))
    assert clean > 0.97
    assert attacked < clean - 0.1


def test_adversarial_training_adds_the_loss_at_the_worst_points_in_training_only():
    net, x, y = linear()
    batch = Batch(x, y, torch.arange(1.0, 8).double())
    objective = Adversarial(CrossEntropy(), 0.3, share=0.25)
    terms = objective.terms(net.train(), batch, "train")
    worse = fgsm(net, CrossEntropy(), x, y, 0.3)
    share = batch.weight / batch.weight.sum()
    clean, there = ((share * losses(net, v, y)).sum() for v in (x, worse))
    assert_close(terms["clean"], clean)
    assert_close(terms["adversarial"], there)
    assert_close(terms["loss"], 0.75 * clean + 0.25 * there)
    assert list(objective.terms(net.eval(), batch, "train")) == ["loss"]
    assert_close(objective.terms(net, batch, "train")["loss"], clean)


def test_the_step_on_parts_of_a_batch_is_the_step_on_the_batch():
    weights = []
    for accumulate in (1, 3):
        net, x, y = linear()
        training = Training(optimizer="sgd", validation=0, accumulate=accumulate)
        objective = Adversarial(CrossEntropy(), 0.3) + L2(0.1)
        train_tensors(net, objective, x, y, training=training, epochs=3, batch_size=7)
        weights.append(net.weight.detach())
    assert_close(*weights)


def test_errors_name_the_value():
    net, x, y = linear()
    with pytest.raises(InvalidData, match=r"fgsm: `x` must hold floats.*got torch.int64"):
        fgsm(net, CrossEntropy(), x.long(), y, 0.1)
    with pytest.raises(InvalidParameter, match=r"pgd: `norm` must be 'inf' or 'l2'; got 'l1'"):
        pgd(net, CrossEntropy(), x, y, 0.1, norm="l1")
    with pytest.raises(InvalidParameter, match=r"pgd: `eps` must be at least 0; got -1"):
        pgd(net, CrossEntropy(), x, y, -1)
    with pytest.raises(InvalidParameter, match=r"`limits` must be \(low, high\); got \(1, 0\)"):
        fgsm(net, CrossEntropy(), x, y, 0.1, limits=(1, 0))
    with pytest.raises(InvalidParameter, match=r"`steps` must be at least 1; got 0"):
        pgd(net, CrossEntropy(), x, y, 0.1, steps=0)
    with pytest.raises(InvalidParameter, match=r"method `rows`\); got Penalised"):
        Adversarial(CrossEntropy() + L2(0.1), 0.1)
    with pytest.raises(InvalidParameter, match=r"`norm` must be 'inf' with steps=1; got 'l2'"):
        Adversarial(SquaredError(), 0.1, norm="l2")
    with pytest.raises(InvalidParameter, match=r"`share` must be above 0 and at most 1; got 2"):
        Adversarial(SquaredError(), 0.1, share=2)
