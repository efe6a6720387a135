"""Weights of one network as the start of another."""

import torch
from torch import nn

from castalia.nets.dense import MLP
from castalia.nn import copy_weights


def test_tensors_of_one_name_and_shape_are_copied_and_the_others_named():
    old, new = MLP(4, 3, hidden=(8, 8)), MLP(4, 2, hidden=(8, 8))
    head = new.layers[4].weight.clone()
    found = copy_weights(old, new)
    assert torch.equal(new.layers[2].weight, old.layers[2].weight)
    assert torch.equal(new.layers[4].weight, head)
    assert found.copied == tuple(f"layers.{i}.{n}" for i in (0, 2) for n in ("weight", "bias"))
    assert found.reshaped == ("layers.4.weight", "layers.4.bias")
    assert found.missing == found.unused == ()


def test_what_is_in_one_of_them_only_is_named():
    old = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 3))
    new = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 3))
    found = copy_weights(old.state_dict(), new)
    assert found.copied == ("0.weight", "0.bias", "1.bias")  # by name: of another layer here
    assert "2.weight" in found.missing
    assert "1.running_mean" in found.missing
    assert found.reshaped == ("1.weight",)
    assert copy_weights(new, old).unused[-1] == "2.bias"


def test_buffers_are_copied_and_the_copy_is_independent():
    old, new = nn.BatchNorm1d(2), nn.BatchNorm1d(2).double()
    old.running_mean.fill_(3.0)
    copy_weights(old, new)
    old.running_mean.fill_(7.0)
    assert new.running_mean.tolist() == [3.0, 3.0]
    assert new.running_mean.dtype == torch.float64
