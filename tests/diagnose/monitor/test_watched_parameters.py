"""What is measured of parameters, and of which."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from castalia.diagnose import watch


class Unrolled(nn.Module):
    """A recurrence written by hand, a layer that is called once, and an RNN."""

    def __init__(self):
        super().__init__()
        self.again, self.once, self.rnn = nn.Linear(6, 6), nn.Linear(6, 6), nn.RNN(6, 6)

    def forward(self, x):
        h, _ = self.rnn(self.once(x))
        for _ in range(5):
            h = torch.tanh(self.again(h))
        return h


def test_only_matrices_that_are_applied_again_and_again_have_eigenvalues_taken():
    torch.manual_seed(0)
    net = Unrolled()
    start = torch.linalg.eigvals(net.again.weight.detach()).abs().max().item()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
    with watch(net, optimizer) as doctor:
        for _ in range(2):
            optimizer.zero_grad()
            net(torch.randn(4, 3, 6)).square().mean().backward()
            optimizer.step()
    radius = {weight.name: weight.radius for weight in doctor.record.weights}
    assert radius["again.weight"] == pytest.approx(start, rel=1e-5)
    assert radius["once.weight"] is None
    assert radius["rnn.weight_hh_l0"] > 0
