import torch
from torch.testing import assert_close

from castalia.diagnose.estimators.extra_pass import ExtraPass
from castalia.nets.dense import MLPEnsemble
from castalia.objectives import CrossEntropy, MemberLoss, SquaredError
from castalia.protocols import Batch


def seen_by_the_doctor(net, loss, x, y):
    objective, names = MemberLoss(loss), {id(p): name for name, p in net.named_parameters()}
    return ExtraPass(net, Batch(x, y), lambda n, b: objective.terms(n, b, "train"), names)


def test_of_several_members_a_row_is_seen_once():
    net, x, y = MLPEnsemble(4, 3, members=5), torch.randn(6, 4), torch.arange(6) % 3
    seen = seen_by_the_doctor(net, CrossEntropy(), x, y)
    assert_close(seen.targets, y)
    assert_close(seen.outputs.softmax(dim=1), net(x).softmax(dim=1))


def test_numbers_of_several_members_are_seen_once():
    net, x, y = MLPEnsemble(4, 3, members=5), torch.randn(6, 4), torch.randn(6, 3)
    assert_close(seen_by_the_doctor(net, SquaredError(), x, y).targets, y)
