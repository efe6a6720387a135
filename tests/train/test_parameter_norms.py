"""Norms of weights, gradients and updates at sampled steps."""

import numpy as np
import pytest
import torch
from torch import nn

from castalia import Training
from castalia.errors import InvalidParameter
from castalia.objectives import SquaredError
from castalia.testing import train_tensors
from castalia.train import ParameterNorms

X = torch.randn(40, 3, generator=torch.Generator().manual_seed(0))
Y = X[:, :1] * 3


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))


def follow(net, lr=0.1, steps=7, every=1):
    optimizer = torch.optim.SGD(net.parameters(), lr=lr)
    with ParameterNorms(every).following(net, optimizer) as kept:
        for _ in range(steps):
            optimizer.zero_grad()
            (net(X) - Y).square().mean().backward()
            optimizer.step()
    return kept, optimizer


def test_a_step_of_plain_descent_moves_by_the_rate_times_the_gradient():
    net = network()
    first = net[0].weight.detach().norm().item()
    kept, _ = follow(net, lr=0.1)
    assert kept.names == ["0.weight", "2.weight"]
    assert kept.weights[0, 0] == pytest.approx(first)
    np.testing.assert_allclose(kept.updates, 0.1 * kept.gradients, rtol=1e-4)
    np.testing.assert_allclose(kept.ratios, kept.updates / kept.weights)


def test_the_callback_keeps_what_the_hooks_keep():
    net, twin, kept = network(), network(), ParameterNorms(every=1)
    training = Training(optimizer="sgd", callbacks=[kept], validation=0)
    train_tensors(net, SquaredError(), X, Y, training=training, epochs=7, lr=0.1, batch_size=40)
    other, _ = follow(twin)
    assert kept.steps == other.steps == list(range(7))
    for found, expected in (
        (kept.gradients, other.gradients),
        (kept.weights, other.weights),
        (kept.updates, other.updates),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-3)


def test_only_every_few_steps_are_kept_and_the_training_is_the_same_bit_for_bit():
    nets = []
    for every in (None, 3):
        net, kept = network(), ParameterNorms(every or 1)
        training = Training(validation=0, callbacks=[kept] if every else [])
        train_tensors(net, SquaredError(), X, Y, training=training, epochs=2, batch_size=8)
        nets.append(net)
    assert kept.steps == [0, 3, 6, 9]
    for a, b in zip(nets[0].parameters(), nets[1].parameters(), strict=True):
        assert torch.equal(a, b)


def test_gradients_are_those_before_clipping():
    kept = ParameterNorms(every=1)
    training = Training(optimizer="sgd", clip=1e-3, callbacks=[kept], validation=0)
    train_tensors(network(), SquaredError(), X, Y, training=training, epochs=1, lr=1.0)
    assert kept.gradients[0].max() > 0.1
    assert np.linalg.norm(kept.updates[0]) <= 1e-3 + 1e-6


def test_zero_matrices_frozen_ones_and_the_hooks_at_the_end():
    net = network()
    nn.init.zeros_(net[2].weight)
    net[0].weight.requires_grad_(False)
    kept, optimizer = follow(net, steps=2)
    assert kept.names == ["2.weight"]
    assert np.isnan(kept.ratios[0, 0])
    assert np.isfinite(kept.ratios[1, 0])
    assert not optimizer._optimizer_step_pre_hooks
    assert not optimizer._optimizer_step_post_hooks


def test_a_parameter_without_gradient_has_norm_zero_and_vectors_count_where_alone():
    class Shift(nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.idle = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))

    net = Shift()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
    with ParameterNorms(1).following(net, optimizer) as kept:
        net.used.sum().backward()
        optimizer.step()
    assert kept.names == ["used", "idle"]
    np.testing.assert_allclose(kept.gradients, [[2**0.5, 0]], rtol=1e-6)


def test_every_must_be_positive_and_nothing_kept_is_an_empty_table():
    with pytest.raises(InvalidParameter, match="`every` must be at least 1; got 0"):
        ParameterNorms(0)
    assert ParameterNorms().gradients.shape == (0, 0)
