"""What is read from the graph below a loss."""

import torch
from torch import nn

from castalia.diagnose.monitor.autograd_graph import longest_chains, read_graph

STEPS = 9


class Net(nn.Module):
    """One square layer, applied to what it gave before, or to every part of the input."""

    def __init__(self, *, chained):
        super().__init__()
        self.chained, self.inner, self.outer = chained, nn.Linear(3, 3), nn.Linear(3, 1)

    def forward(self, x):
        h, found = x[:, 0], []
        for step in range(STEPS):
            h = torch.tanh(self.inner(h if self.chained else x[:, step]))
            found.append(h)
        return self.outer(torch.stack(found).sum(dim=0))


def chains(net, least=STEPS):
    names = {id(p): name for name, p in net.named_parameters()}
    return longest_chains(read_graph(net(torch.randn(4, STEPS, 3)).sum(), names), least)


def test_the_steps_of_a_recurrence_feed_each_other():
    assert chains(Net(chained=True))["inner.weight"] == STEPS


def test_calls_side_by_side_are_no_recurrence():
    assert chains(Net(chained=False))["inner.weight"] == 1


def test_layers_that_are_called_seldom_are_left_out():
    assert "outer.weight" not in chains(Net(chained=True))
    assert chains(Net(chained=True), STEPS + 1) == {}
