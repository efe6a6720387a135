"""The quick Adam step is torch's, bit for bit."""

import copy

import pytest
import torch
from torch import nn

from castalia.optim import build_optimizer, fused_step

DECAYS = pytest.mark.parametrize("decay", [0.0, 0.1])
NAMES = pytest.mark.parametrize("name", ["adam", "adamw"])


def twins(name, decay):
    """Two equal networks, each with an optimizer of its own."""
    torch.manual_seed(0)
    first = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))
    second = copy.deepcopy(first)
    made = [
        build_optimizer(name, net.parameters(), lr=0.05, weight_decay=decay)
        for net in (first, second)
    ]
    return first, second, *made


def backward(net, seed, skip=()):
    x = torch.randn(7, 3, generator=torch.Generator().manual_seed(seed))
    net.zero_grad()
    net(x).square().mean().backward()
    for i in skip:
        list(net.parameters())[i].grad = None


def equal(first, second):
    return all(
        torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True)
    )


@NAMES
@DECAYS
def test_it_equals_the_step_of_torch_bit_for_bit(name, decay):
    ours, theirs, quick, plain = twins(name, decay)
    update = fused_step(quick)
    for seed in range(5):
        backward(ours, seed)
        backward(theirs, seed)
        update()
        plain.step()
        assert equal(ours, theirs)


@NAMES
@pytest.mark.parametrize("skip", [(0,), (1, 3), (0, 2), (0, 1, 2, 3)])
def test_parameters_without_a_gradient_are_skipped_and_the_others_move_once(name, skip):
    ours, theirs, quick, plain = twins(name, 0.1)
    update = fused_step(quick)
    for seed in range(4):
        missing = skip if seed % 2 else ()
        backward(ours, seed, missing)
        backward(theirs, seed, missing)
        update()
        plain.step()
        assert equal(ours, theirs)


@NAMES
@DECAYS
def test_its_state_survives_a_round_trip_into_torch_and_back(name, decay):
    ours, theirs, quick, plain = twins(name, decay)
    update = fused_step(quick)
    for seed in range(3):
        backward(ours, seed)
        backward(theirs, seed)
        update()
        plain.step()
    saved = copy.deepcopy(quick.state_dict())
    plain.load_state_dict(saved)  # torch goes on from our state, we from the loaded one
    quick.load_state_dict(copy.deepcopy(saved))
    update = fused_step(quick)
    for seed in range(3, 6):
        backward(ours, seed)
        backward(theirs, seed)
        update()
        plain.step()
    assert equal(ours, theirs)
    assert quick.state_dict()["state"][0]["step"] == 6


def test_it_follows_a_changed_rate():
    ours, theirs, quick, plain = twins("adam", 0.0)
    update = fused_step(quick)
    for seed, rate in enumerate((0.1, 0.01)):
        quick.param_groups[0]["lr"] = plain.param_groups[0]["lr"] = rate
        backward(ours, seed)
        backward(theirs, seed)
        update()
        plain.step()
    assert equal(ours, theirs)


@pytest.mark.parametrize(
    "make",
    [
        lambda p: torch.optim.SGD(p, lr=0.1),
        lambda p: torch.optim.Adam(p, lr=0.1, amsgrad=True, fused=True),
        lambda p: torch.optim.Adam(p, lr=0.1),
    ],
    ids=["sgd", "amsgrad", "not fused"],
)
def test_it_leaves_other_optimizers_to_torch(make):
    assert fused_step(make(nn.Linear(2, 1).parameters())) is None


def test_a_network_cut_into_pieces_takes_the_same_steps(monkeypatch):
    monkeypatch.setattr("castalia.optim.fused_adam._piece_size", lambda params: 5)
    torch.manual_seed(0)
    ours, theirs = nn.Linear(7, 3), nn.Linear(7, 3)
    theirs.load_state_dict(ours.state_dict())
    cut = torch.optim.Adam(ours.parameters(), lr=torch.tensor(0.1), fused=True)
    plain = torch.optim.Adam(theirs.parameters(), lr=0.1, fused=True)
    update, x = fused_step(cut), torch.randn(4, 7)
    for net, take in ((ours, update), (theirs, plain.step)):
        for _ in range(3):
            net.zero_grad()
            net(x).square().sum().backward()
            take()
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-6, atol=0)
        assert cut.state[p]["step"] == plain.state[q]["step"] == 3
