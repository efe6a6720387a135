import torch
from torch.testing import assert_close

from castalia.nets.dense import MLPEnsemble
from castalia.objectives import CrossEntropy, MemberLoss
from castalia.protocols import Batch


def test_a_row_is_kept_from_members_whose_weight_is_zero():
    net, x, y = MLPEnsemble(4, 3, members=2), torch.randn(5, 4), torch.arange(5) % 3
    weight = torch.tensor([[1.0, 0.0]] * 2 + [[0.0, 1.0]] * 3)
    found = MemberLoss(CrossEntropy()).terms(net, Batch(x, y, weight), "train")["loss"]
    first, second = net.member_outputs(x)
    own = [CrossEntropy().rows(first[:2], y[:2]), CrossEntropy().rows(second[2:], y[2:])]
    assert_close(found, torch.cat(own).mean())


def test_biases_do_not_decay_for_having_an_axis_of_members():
    net = MLPEnsemble(4, 3, hidden=(7,), members=2)
    phase = MemberLoss(CrossEntropy()).phases(net)[0]
    decayed = dict(zip(dict(net.named_parameters()), phase.decayed, strict=True))
    assert decayed == {
        "layers.0.weight": True,
        "layers.0.bias": False,
        "layers.2.weight": True,
        "layers.2.bias": False,
    }
