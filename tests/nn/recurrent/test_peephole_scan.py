"""The peephole LSTM with its gradient written out: held to the plain cell."""

from functools import partial

import pytest
import torch
from torch.testing import assert_close

from castalia.nn import LSTMCell, Recurrent
from castalia.nn.recurrent.peephole_scan import peephole_scan


@pytest.mark.parametrize("bidirectional", [False, True])
def test_outputs_states_and_gradients_are_those_of_the_plain_cell(bidirectional):
    torch.manual_seed(0)
    make = partial(Recurrent, partial(LSTMCell, peephole=True), 3, 5, depth=2)
    quick, plain = (make(bidirectional=bidirectional, fused=f).double() for f in (True, False))
    plain.load_state_dict(quick.state_dict())
    x = torch.randn(4, 7, 3, dtype=torch.float64, requires_grad=True)
    state = tuple(torch.randn(4 if bidirectional else 2, 4, 5).double() for _ in range(2))
    found = []
    for net in (quick, plain):
        out, last = net(x, state)
        loss = (out * out.cos()).sum() + last[0].sin().sum() + last[1].square().sum()
        found.append((out, *last, *torch.autograd.grad(loss, [x, *net.parameters()])))
    for one, other in zip(*found, strict=True):
        assert_close(one, other)


def test_the_gradient_is_that_of_small_differences():
    torch.manual_seed(0)
    shapes = ((2, 4, 12), (2, 3), (2, 3), (12, 3), (12,), (3, 3))
    values = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]

    def scan(lifted, h, c, weight, bias, peephole):
        out, state = peephole_scan(lifted, (h, c), weight, bias, peephole)
        return out, *state

    assert torch.autograd.gradcheck(scan, values)


def test_without_peepholes_it_is_torch_s_lstm():
    torch.manual_seed(0)
    cell, lstm = LSTMCell(3, 5, peephole=True), torch.nn.LSTM(3, 5, batch_first=True)
    with torch.no_grad():
        cell.peephole.zero_()
        for ours, theirs in ((cell.u, "ih"), (cell.w, "hh")):
            ours.weight.copy_(getattr(lstm, f"weight_{theirs}_l0"))
            ours.bias.copy_(getattr(lstm, f"bias_{theirs}_l0"))
    x = torch.randn(2, 6, 3)
    net = Recurrent(lambda inputs, hidden: cell, 3, 5)
    assert_close(net(x)[0], lstm(x)[0])


def test_gradients_of_gradients_are_those_of_the_plain_cell():
    torch.manual_seed(0)
    quick, plain = (
        Recurrent(partial(LSTMCell, peephole=True), 2, 3, fused=fused) for fused in (True, False)
    )
    plain.load_state_dict(quick.state_dict())
    found = []
    for net in (quick, plain):
        x = torch.ones(1, 4, 2, requires_grad=True)
        (gradient,) = torch.autograd.grad(net(x)[0].sum(), x, create_graph=True)
        found.append(torch.autograd.grad(gradient.square().sum(), [x, *net.parameters()]))
    for one, other in zip(*found, strict=True):
        assert_close(one, other)
