"""Gradients and steps against direct computation."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from castalia.diagnose.monitor import watch
from castalia.diagnose.monitor.weight_measures import (
    all_finite,
    any_gradient,
    equal_rows,
    gradient_norms,
    gradient_sample,
    looks_fresh,
    sample,
    update_ratios,
)

OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_norms_and_ratios_are_those_computed_directly(name):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    optimizer = OPTIMIZERS[name](net.parameters())
    x, y = torch.randn(12, 4), torch.arange(12) % 3
    doctor = watch(net, optimizer)
    for step in range(4):
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        norms = {n: p.grad.norm().item() for n, p in net.named_parameters()}
        nn.utils.clip_grad_norm_(net.parameters(), 0.05)
        clipped = {n: p.grad.norm().item() for n, p in net.named_parameters()}
        before = {n: p.detach().clone() for n, p in net.named_parameters()}
        optimizer.step()
        look = doctor.record.looks[step]
        for n, p in net.named_parameters():
            assert look.gradients[n] == pytest.approx(norms[n], rel=1e-5)
            assert look.applied[n] == pytest.approx(clipped[n], rel=1e-5)
            ratio = ((p.detach() - before[n]).norm() / before[n].norm()).item()
            assert look.updates[n] == pytest.approx(ratio, rel=1e-4)
            rms = before[n].square().mean().sqrt().item()
            assert look.weights[n] == pytest.approx(rms, rel=1e-5)
    doctor.close()


def test_the_gradient_of_the_next_step_is_kept_beside_that_of_a_look():
    torch.manual_seed(0)
    net = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    seen = []
    with watch(net, optimizer) as doctor:
        for _ in range(8):
            optimizer.zero_grad()
            net(torch.randn(5, 3)).square().mean().backward()
            seen.append(torch.cat([p.grad.flatten() for p in net.parameters()]).numpy().copy())
            optimizer.step()
    looks = {look.step: look for look in doctor.record.looks}
    np.testing.assert_array_equal(looks[3].gradient, seen[3])
    np.testing.assert_array_equal(looks[3].next_gradient, seen[4])
    np.testing.assert_array_equal(looks[5].next_gradient, seen[6])


# ------------------------------------------------------------------- gradients left over


def stale_of(zero, accumulate=1, optimizer=True, steps=5):
    torch.manual_seed(0)
    net = nn.Linear(3, 2)
    made = torch.optim.SGD(net.parameters(), lr=0.01)
    with watch(net, made if optimizer else None) as doctor:
        for _ in range(steps):
            if zero is not None:
                zero(made)
            for _ in range(accumulate):
                (net(torch.randn(5, 3)).square().mean() / accumulate).backward()
            made.step()
    return [look.stale for look in doctor.record.looks]


@pytest.mark.parametrize("optimizer", [True, False], ids=["optimizer", "no optimizer"])
def test_gradients_never_reset_are_told_from_those_reset_either_way(optimizer):
    reset = [lambda o: o.zero_grad(), lambda o: o.zero_grad(set_to_none=False)]
    for zero in reset:
        assert stale_of(zero, optimizer=optimizer)[1:4] == [False] * 3
    assert stale_of(None, optimizer=optimizer)[1:4] == [True] * 3


def test_accumulation_over_parts_is_no_left_over():
    assert stale_of(lambda o: o.zero_grad(), accumulate=3)[1:4] == [False] * 3
    assert stale_of(None, accumulate=3)[1:4] == [True] * 3
    parts = stale_of(lambda o: o.zero_grad(), accumulate=3, optimizer=False)
    assert True not in parts  # nobody said when the steps are


@pytest.mark.parametrize("forgotten", [False, True])
@pytest.mark.parametrize("watched", ["generator", "critic", "both"])
def test_left_over_gradients_in_an_adversarial_loop(watched, forgotten):
    torch.manual_seed(0)
    generator, critic = nn.Linear(2, 3), nn.Linear(3, 1)
    ours, theirs = (torch.optim.SGD(net.parameters(), lr=0.01) for net in (generator, critic))
    doctor = {
        "generator": lambda: watch(generator, ours),
        "critic": lambda: watch(critic, theirs),
        "both": lambda: watch(nn.ModuleList([generator, critic]), [ours, theirs]),
    }[watched]()
    for _ in range(6):
        fake = generator(torch.randn(8, 2))
        if not forgotten:
            theirs.zero_grad()
        (
            F.softplus(critic(fake.detach())) + F.softplus(-critic(torch.randn(8, 3)))
        ).mean().backward()
        theirs.step()
        if not forgotten:
            ours.zero_grad()
        F.softplus(-critic(fake)).mean().backward()
        ours.step()
    doctor.close()
    known = [look.stale for look in doctor.record.looks if look.stale is not None]
    assert len(known) >= 3
    assert set(known) == {forgotten}


# ------------------------------------------------------------------- small functions


def test_gradients_sparse_complex_half_empty_or_missing_have_norms():
    embedding = nn.Embedding(5, 2, sparse=True)
    embedding(torch.tensor([1, 1, 3])).sum().backward()
    number = nn.Parameter(torch.ones(2, dtype=torch.complex64))
    number.grad = torch.tensor([3 + 4j, 0j])
    half = nn.Parameter(torch.ones(3, dtype=torch.float16))
    half.grad = torch.full((3,), 60000.0, dtype=torch.float16)
    empty, missing = nn.Parameter(torch.ones(0)), nn.Parameter(torch.ones(1))
    empty.grad = torch.ones(0)
    named = {"e": embedding.weight, "c": number, "h": half, "o": empty, "m": missing}
    norms = gradient_norms(named)
    assert norms["m"] is None
    assert norms["o"] == 0
    assert norms["e"] == pytest.approx(math.sqrt(10))
    assert norms["c"] == pytest.approx(5)
    assert norms["h"] == pytest.approx(60000 * math.sqrt(3), rel=1e-3)
    assert gradient_sample(named).shape == (4 + 4 + 3,)
    assert any_gradient(named)
    assert not any_gradient({"o": empty, "m": missing})


def test_samples_are_even_and_small_also_of_transposed_weights():
    weight = nn.Parameter(torch.randn(300, 200))
    turned = nn.Parameter(torch.randn(300, 200).t())
    before = sample({"a": weight, "b": turned})
    assert all(value.numel() <= 4096 for value in before.values())
    assert all(value.untyped_storage().nbytes() <= 2 * 4 * 4096 for value in before.values())
    with torch.no_grad():
        weight.mul_(1.01), turned.mul_(1.01)
    ratios, _ = update_ratios(before, {"a": weight, "b": turned})
    assert ratios == pytest.approx({"a": 0.01, "b": 0.01}, rel=1e-3)


def test_a_parameter_at_zero_has_no_ratio_until_it_has_a_size():
    bias, still = nn.Parameter(torch.zeros(3)), nn.Parameter(torch.zeros(3))
    before = sample({"moved": bias, "still": still})
    with torch.no_grad():
        bias.add_(1.0)
    ratios, sizes = update_ratios(before, {"moved": bias, "still": still})
    assert ratios == {"still": 0.0}
    assert sizes == {"moved": 0.0, "still": 0.0}


def test_equal_rows_are_counted_and_odd_matrices_are_no_exception():
    assert equal_rows(torch.zeros(4, 3)) == 1.0
    assert equal_rows(torch.randn(40, 3)) == 0.0
    assert equal_rows(torch.full((2, 2), math.nan)) == 0.0
    assert equal_rows(torch.zeros(3, 0)) == 0.0
    assert equal_rows(torch.ones(2, 2, dtype=torch.complex64)) == 1.0


def test_layers_as_they_were_drawn_are_told_from_trained_ones():
    torch.manual_seed(0)
    drawn = [nn.Linear(50, 60).weight, nn.Conv2d(8, 16, 3).weight, nn.Embedding(50, 10).weight]
    drawn += [nn.init.xavier_uniform_(torch.empty(64, 20)), torch.randn(40, 30).double() / 7]
    drawn += [nn.init.trunc_normal_(torch.empty(48, 48), std=0.02), torch.randn(300, 4096)]
    assert all(map(looks_fresh, drawn))
    net = nn.Sequential(nn.Linear(20, 40), nn.ReLU(), nn.Linear(40, 10))
    x = torch.randn(400, 20)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(150):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), x[:, :10].argmax(1)).backward()
        optimizer.step()
    assert not any(looks_fresh(net[i].weight) for i in (0, 2))


def test_parameters_that_are_not_finite_are_found():
    good, bad = torch.ones(3), torch.tensor([1.0, math.inf])
    worse, large = torch.tensor([math.nan, 1.0]), torch.full((3,), 1e30)
    assert all_finite([good, bad, worse, large, torch.ones(0)]) == [True, False, False, True, True]
