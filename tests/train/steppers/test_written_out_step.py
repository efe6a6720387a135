"""Small steps by the network's own back-propagation, and when they go by autograd."""

import pytest
import torch

from castalia import Training
from castalia.nets.dense import MLP
from castalia.objectives import L2, CrossEntropy
from castalia.protocols import Batch
from castalia.testing import train_tensors

X = torch.randn(40, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
Y = (X[:, 0] > 0).long()
SETTINGS = {"epochs": 5, "batch_size": 7, "lr": 0.01}


def network():
    torch.manual_seed(1)
    return MLP(3, 2, hidden=(8, 8)).double()


class Counting(MLP):
    """Counts the steps that are done by hand."""

    count = 0

    def backprop(self, x, loss_gradient):
        self.count += 1
        return super().backprop(x, loss_gradient)


def counted(objective=None, prepare=None, **settings):
    net = Counting(3, 2, hidden=(8,)).double()
    if prepare is not None:
        prepare(net)
    train_tensors(net, objective or CrossEntropy(), X, Y, training=Training(**settings), **SETTINGS)
    return net.count


def test_it_ends_where_autograd_ends(monkeypatch):
    ours, theirs = network(), network()
    first = train_tensors(ours, CrossEntropy(), X, Y, **SETTINGS)
    monkeypatch.setattr(MLP, "can_backprop", lambda self: False)
    second = train_tensors(theirs, CrossEntropy(), X, Y, **SETTINGS)
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-9, atol=1e-9)
    losses = [[line["loss"] for line in state.history] for state in (first, second)]
    assert losses[0] == pytest.approx(losses[1], abs=1e-9)


def test_plain_steps_are_done_by_hand():
    assert counted() == 30


def freeze(net):
    net.layers[0].weight.requires_grad_(False)


def listen(net):
    net.layers[1].register_forward_hook(lambda module, inputs, output: None)


@pytest.mark.parametrize(
    "settings",
    [
        {"prepare": freeze},
        {"prepare": listen},
        {"objective": CrossEntropy() + L2(1e-3)},
        {"accumulate": 2},
    ],
    ids=["frozen part", "hook", "penalty", "micro-batches"],
)
def test_whatever_needs_autograd_gets_it(settings):
    assert counted(**settings) == 0


class Halved(CrossEntropy):
    """Changes the loss and not its gradient written out."""

    def terms(self, net, batch, phase):
        return {"loss": super().terms(net, batch, phase)["loss"] / 2}


class Rows(CrossEntropy):
    """Changes the loss of a row."""

    def rows(self, outputs, targets):
        return super().rows(outputs, targets) / 2


class Shifted(Counting):
    """Changes the forward pass and not its back-propagation: ``backprop`` is the older one."""

    def forward(self, x):
        return super().forward(x + 1)


@pytest.mark.parametrize("objective", [Halved(), Rows()], ids=["terms", "rows"])
def test_an_objective_changed_by_a_subclass_is_the_one_that_is_trained(objective):
    assert counted(objective=objective) == 0


def test_a_network_changed_by_a_subclass_is_the_one_that_is_trained():
    net = Shifted(3, 2, hidden=(8,)).double()
    train_tensors(net, CrossEntropy(), X, Y, **SETTINGS)
    assert net.count == 0


def test_a_forward_put_on_the_network_itself_is_the_one_that_is_trained():
    def replace(net):
        net.forward = lambda x: net.layers(x + 1)

    assert counted(prepare=replace) == 0


def test_a_layer_used_twice_gets_the_sum_of_its_gradients():
    def share(net):
        net.layers[2] = net.layers[0]

    net = Counting(3, 2, hidden=(3, 3)).double()
    share(net)
    twin = Counting(3, 2, hidden=(3, 3)).double()  # the same values in two places
    twin.load_state_dict(net.state_dict())
    CrossEntropy().terms(twin, Batch(X, Y), "train")["loss"].backward()
    summed = twin.layers[0].weight.grad + twin.layers[2].weight.grad
    before = net.layers[0].weight.detach().clone()
    train_tensors(
        net, CrossEntropy(), X, Y, training=Training(optimizer="sgd"), batch_size=40, lr=0.1
    )
    assert net.count == 0
    torch.testing.assert_close(net.layers[0].weight, before - 0.1 * summed)
