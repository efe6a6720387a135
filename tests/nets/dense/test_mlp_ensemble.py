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
    net = MLPEnsemble(4, 3, hidden=(7, 5), members=3, activation=activation, categories=(3,))
    net = net.double()
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
