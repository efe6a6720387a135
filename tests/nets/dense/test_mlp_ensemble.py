import pytest
import torch
from torch.testing import assert_close

from castalia.nets.dense import MLP, MLPEnsemble
from castalia.objectives import CrossEntropy, MemberLoss, SquaredError
from castalia.protocols import Batch


def copied(net, member):
    """A single perceptron with the weights of one member."""
    linears = [layer for layer in net.layers if hasattr(layer, "weight")]
    single = MLP(linears[0].weight.shape[1], linears[-1].weight.shape[2], hidden=(7, 5))
    with torch.no_grad():
        for ours, theirs in zip(single.layers[::2], linears, strict=True):
            ours.weight.copy_(theirs.weight[member].T)
            ours.bias.copy_(theirs.bias[member])
    return single


def test_each_member_is_a_perceptron_and_the_answer_is_their_mean():
    net, x = MLPEnsemble(4, 3, hidden=(7, 5), members=3), torch.randn(6, 4)
    alone = torch.stack([copied(net, member)(net.features(x)) for member in range(3)])
    assert_close(net.member_outputs(x), alone)
    assert_close(net(x), alone.mean(dim=0))


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("loss", [CrossEntropy(), SquaredError()])
def test_written_out_gradients_are_autograds(activation, loss):
    torch.manual_seed(0)
    cuts = [[-1.0, 0.0, 1.0], [0.0, 0.5, 2.0]]  # every second member does not see the pieces
    sizes = {"hidden": (7, 5), "members": 3, "categories": (3,), "quantiles": cuts}
    net = MLPEnsemble(4, 3, activation=activation, **sizes).double()
    x = torch.cat([torch.randn(6, 3), torch.randint(0, 3, (6, 1))], dim=1).double()
    y = torch.randn(6, 3).double() if isinstance(loss, SquaredError) else torch.arange(6) % 3
    batch, objective = Batch(x, y, torch.rand(6, 3).double()), MemberLoss(loss)
    expected = objective.terms(net, batch, "train")["loss"]
    gradients = torch.autograd.grad(expected, list(net.parameters()))
    assert net.can_backprop()
    assert_close(net.backprop(x, lambda out: objective.loss_gradient(out, batch)), expected)
    for parameter, gradient in zip(net.parameters(), gradients, strict=True):
        assert_close(parameter.grad, gradient)


def test_dropout_is_left_to_autograd():
    assert not MLPEnsemble(4, 3, dropout=0.1).can_backprop()


def test_every_second_member_sees_numbers_whole():
    torch.manual_seed(0)
    cuts = [[-2.0, -1.0, 0.0, 1.0, 2.0]]
    net, x = MLPEnsemble(1, 1, hidden=(7, 5), members=4, quantiles=cuts), torch.randn(6, 1)
    before = net.member_outputs(x)
    with torch.no_grad():
        net.layers[0].weight[:, 1:] += 1.0  # what the pieces are multiplied by
    moved = (net.member_outputs(x) - before).abs().amax(dim=(1, 2)) > 0
    assert moved.tolist() == [True, False, True, False]


def test_members_may_answer_rows_of_their_own():
    cuts = [[-1.0, 0.0, 1.0]]
    net, x = MLPEnsemble(2, 3, members=3, quantiles=cuts), torch.randn(6, 2)
    rows = torch.tensor([[0, 5], [3, 3], [1, 2]])
    each = net.member_outputs(x)
    wanted = torch.stack([each[i, places] for i, places in enumerate(rows)])
    assert_close(net.member_outputs(x, rows), wanted)


def test_rows_are_judged_by_the_members_that_left_them_out():
    net, x = MLPEnsemble(2, 3, members=3), torch.randn(2, 2)
    held = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]])
    each = net.member_outputs(x)
    found = net.held_out_outputs(x, held)
    assert_close(found, torch.stack([each[0, 0], each[1:, 1].mean(dim=0)]))
