import pytest
import torch
from torch.testing import assert_close

from castalia.nets.dense import MLPEnsemble
from castalia.objectives import CrossEntropy, MemberLoss, SquaredError
from castalia.protocols import Batch


def test_a_row_is_kept_from_members_whose_weight_is_zero():
    net, x, y = MLPEnsemble(4, 3, members=2), torch.randn(5, 4), torch.arange(5) % 3
    weight = torch.tensor([[1.0, 0.0]] * 2 + [[0.0, 1.0]] * 3)
    found = MemberLoss(CrossEntropy()).terms(net, Batch(x, y, weight), "train")["loss"]
    first, second = net.member_outputs(x)
    own = [CrossEntropy().rows(first[:2], y[:2]), CrossEntropy().rows(second[2:], y[2:])]
    assert_close(found, torch.cat(own).mean())


@pytest.mark.parametrize("loss", [CrossEntropy(), SquaredError()])
def test_members_are_judged_by_their_own_rows_and_look_at_no_other(loss, monkeypatch):
    net, x, y = MLPEnsemble(4, 3, members=3), torch.randn(5, 4), torch.arange(5) % 3
    y = torch.randn(5, 3) if isinstance(loss, SquaredError) else y
    weight = torch.tensor([[1.0, 0, 0], [0, 2.0, 0], [0.5, 0, 0], [0, 3.0, 0], [4.0, 0, 0]])
    each = torch.stack([loss.rows(outputs, y) for outputs in net.member_outputs(x)])  # (M, B)
    seen, answer = [], net.layers.forward
    monkeypatch.setattr(net.layers, "forward", lambda h: answer(seen.append(h.shape[:2]) or h))
    found, total = MemberLoss(loss).judged(net, Batch(x, y, weight), "train")
    assert_close(total, torch.tensor([5.5, 5.0, 0.0]))
    assert_close(found[:2], ((each * weight.T).sum(dim=1) / weight.sum(dim=0))[:2])
    assert found[2] == 0.0  # nothing judges it
    assert seen == [(3, 3)]  # not all five rows of each


def test_without_weights_of_members_every_row_judges_them_all():
    net, x, y = MLPEnsemble(4, 3, members=2), torch.randn(5, 4), torch.arange(5) % 3
    each = torch.stack([CrossEntropy().rows(outputs, y) for outputs in net.member_outputs(x)])
    weight = torch.tensor([1.0, 2.0, 0.0, 1.0, 1.0])
    for given, wanted in ((None, each.mean(dim=1)), (weight, each @ weight / 5)):
        assert_close(MemberLoss(CrossEntropy()).judged(net, Batch(x, y, given), "train")[0], wanted)


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
