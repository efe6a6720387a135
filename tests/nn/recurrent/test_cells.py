"""Cells are their equations, equal torch's where torch has them, and lose what is taken away."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.nn.recurrent import (
    CELLS,
    ContextCell,
    ElmanCell,
    GRUCell,
    JordanCell,
    LeakyIntegratorCell,
    LSTMCell,
    OutputRecurrentCell,
    Recurrent,
)

DRAW = torch.Generator().manual_seed(0)
X, H, C = (torch.randn(3, n, generator=DRAW) for n in (4, 5, 5))
sigmoid, tanh = torch.sigmoid, torch.tanh


def copied(theirs, ours):
    for letter, name in (("u", "ih"), ("w", "hh")):
        getattr(ours, letter).weight.data.copy_(getattr(theirs, f"weight_{name}"))
        getattr(ours, letter).bias.data.copy_(getattr(theirs, f"bias_{name}"))
    return ours


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_elmans_cell_is_that_of_torch(activation):
    theirs = nn.RNNCell(4, 5, nonlinearity=activation)
    ours = copied(theirs, ElmanCell(4, 5, activation=activation))
    assert_close(ours(X, (H,))[0], theirs(X, H))


def test_the_lstm_is_that_of_torch():
    theirs = nn.LSTMCell(4, 5)
    h, (_, c) = copied(theirs, LSTMCell(4, 5))(X, (H, C))
    expected = theirs(X, (H, C))
    assert_close((h, c), expected)


def test_the_gru_is_that_of_torch():
    theirs = nn.GRUCell(4, 5)
    assert_close(copied(theirs, GRUCell(4, 5))(X, (H,))[0], theirs(X, H))


# ---- the LSTM with parts taken away ----


def blocks(cell, x, h):
    return (cell.u(x) + cell.w(h)).chunk(4, dim=-1)


@pytest.mark.parametrize("part", ["nig", "nfg", "nog", "niaf", "noaf"])
def test_an_lstm_without_a_part_has_it_forced_open_or_straight(part):
    cell = LSTMCell(4, 5, without=[part])
    i, f, g, o = blocks(cell, X, H)
    one = torch.ones_like(i)
    i = one if part == "nig" else sigmoid(i)
    f = one if part == "nfg" else sigmoid(f)
    o = one if part == "nog" else sigmoid(o)
    c = f * C + i * (g if part == "niaf" else tanh(g))
    h = o * (c if part == "noaf" else tanh(c))
    found, (_, cell_state) = cell(X, (H, C))
    assert_close((found, cell_state), (h, c))
    full = LSTMCell(4, 5)
    full.load_state_dict(cell.state_dict())
    assert not torch.allclose(full(X, (H, C))[0], found, atol=1e-3)


def test_without_a_forget_gate_the_cell_only_adds_up():
    net = Recurrent(lambda a, b: LSTMCell(a, b, without=["nfg"]), 4, 5)
    x = torch.randn(3, 30, 4, generator=DRAW)
    cell, c, total = net.cells[0], torch.zeros(3, 5), torch.zeros(3, 5)
    state = (torch.zeros(3, 5), c)
    for t in range(30):
        i, _, g, _ = blocks(cell, x[:, t], state[0])
        total = total + sigmoid(i) * tanh(g)
        _, state = cell(x[:, t], state)
    assert_close(state[1], total)
    assert_close(net(x)[1][1][0], total)


def test_without_an_output_gate_the_cell_is_shown():
    h, (_, c) = LSTMCell(4, 5, without="nog")(X, (H, C))
    assert_close(h, tanh(c))


def test_peepholes_of_zero_change_nothing_and_the_output_gate_sees_the_new_cell():
    plain, peeping = LSTMCell(4, 5), LSTMCell(4, 5, peephole=True)
    peeping.load_state_dict({**plain.state_dict(), "peephole": torch.zeros(3, 5)})
    assert_close(peeping(X, (H, C))[0], plain(X, (H, C))[0])
    p = torch.randn(3, 5, generator=DRAW)
    peeping.peephole.data.copy_(p)
    i, f, g, o = blocks(peeping, X, H)
    c = sigmoid(f + p[1] * C) * C + sigmoid(i + p[0] * C) * tanh(g)
    assert_close(peeping(X, (H, C))[0], sigmoid(o + p[2] * c) * tanh(c))  # erratum A29: c, not c-


def test_an_lstm_can_hold_a_number_for_hundreds_of_steps():
    cell = LSTMCell(2, 1)  # inputs: a value, and whether to store it
    with torch.no_grad():
        for parameter in cell.parameters():
            parameter.zero_()
        cell.u.bias.copy_(torch.tensor([-20.0, 20.0, 0.0, 20.0]))  # closed, keep, -, open
        cell.u.weight[0, 1] = 40.0  # the input gate opens to store
        cell.u.weight[2, 0] = 1.0
        cell.u.weight[1, 1] = -40.0  # and the forget gate closes
    x = torch.randn(6, 300, 2, generator=DRAW)
    x[..., 1] = 0.0
    x[:, 20, 1] = 1.0
    net = Recurrent(lambda *_: cell, 2, 1, fused=False)
    assert_close(net(x)[0][:, -1, 0], tanh(tanh(x[:, 20, 0])), atol=1e-4, rtol=1e-4)


# ---- the forms of the GRU ----


def gates(cell, x, h):
    r, z, n = (cell.u(x)).chunk(3, -1)
    hr, hz, hn = (cell.w(h)).chunk(3, -1)
    return sigmoid(r + hr), sigmoid(z + hz), n, hn


def test_the_gru_of_the_notes_is_its_formula():
    cell = GRUCell(4, 5, reset="before", replaces=True)
    r, z, n, _ = gates(cell, X, H)
    w, b = cell.w.weight[10:], cell.w.bias[10:]
    candidate = tanh(n + (r * H) @ w.T + b)  # erratum A27: tanh, not a sigmoid
    assert_close(cell(X, (H,))[0], (1 - z) * H + z * candidate)


@pytest.mark.parametrize("reset", ["after", "before", "none"])
def test_the_two_meanings_of_the_update_gate_are_mirrors(reset):
    keeps, replaces = (GRUCell(4, 5, reset=reset, replaces=flag) for flag in (False, True))
    replaces.load_state_dict(keeps.state_dict())
    z = slice(-10, -5)
    for layer in (replaces.u, replaces.w):  # z -> 1 - z: the sign of its argument
        layer.weight.data[z] *= -1
        layer.bias.data[z] *= -1
    assert_close(keeps(X, (H,))[0], replaces(X, (H,))[0])


def test_reset_before_and_after_the_matrix_differ():
    before, after = GRUCell(4, 5, reset="before"), GRUCell(4, 5)
    before.load_state_dict(after.state_dict())
    assert not torch.allclose(before(X, (H,))[0], after(X, (H,))[0], atol=1e-3)


@pytest.mark.parametrize("reset", ["after", "before", "none"])
def test_extreme_update_gates_copy_or_replace(reset):  # WE-87
    cell = GRUCell(4, 5, reset=reset, replaces=True)
    z = slice(-10, -5)
    cell.u.bias.data[z] = -100.0
    assert_close(cell(X, (H,))[0], H)
    cell.u.bias.data[z] = 100.0
    replaced = cell(X, (H,))[0]
    mirrored = GRUCell(4, 5, reset=reset)
    mirrored.load_state_dict(cell.state_dict())
    assert_close(mirrored(X, (H,))[0], H)  # z = 1 keeps, in 001's and torch's form
    mirrored.u.bias.data[z] = -100.0
    assert_close(mirrored(X, (H,))[0], replaced)


def test_a_unit_with_one_gate_is_its_formula():
    cell = GRUCell(4, 5, reset="none", replaces=True)
    z, n = (cell.u(X) + cell.w(H)).chunk(2, -1)
    z = sigmoid(z)
    assert_close(cell(X, (H,))[0], (1 - z) * H + z * tanh(n))


# ---- contexts and outputs fed back ----


def test_a_context_of_equal_weights_is_elmans_state():
    cell, elman = ContextCell(4, 5), ElmanCell(4, 5)
    elman.w.bias.data.zero_()
    for one, other in (("u", "u_context"), ("w", "w_context")):
        getattr(cell, other).load_state_dict(getattr(cell, one).state_dict())
    elman.u.load_state_dict(cell.u.state_dict())
    elman.w.weight.data.copy_(cell.w.weight)
    x = torch.randn(2, 6, 4, generator=DRAW)
    ours, plain = (Recurrent(lambda *_, c=c: c, 4, 5, fused=False) for c in (cell, elman))
    assert_close(ours(x)[0], plain(x)[0])


def test_a_context_has_gradients_of_its_own():
    net = Recurrent(lambda a, b: ContextCell(a, b, context=3), 4, 5)
    net(torch.randn(2, 6, 4, generator=DRAW))[0].pow(2).sum().backward()
    assert all(p.grad.abs().sum() > 0 for p in net.parameters())


def test_a_fed_back_output_is_its_formula():
    cell = OutputRecurrentCell(4, 5, outputs=2)
    y = torch.randn(3, 2, generator=DRAW)
    expected = cell.v(tanh(cell.u(X) + cell.w(y)))
    assert_close(cell(X, (y,)), (expected, (expected,)))


def test_teacher_forcing_at_once_is_teacher_forcing_step_by_step():
    cell = OutputRecurrentCell(4, 5, outputs=2)
    x, target = torch.randn(3, 7, 4, generator=DRAW), torch.randn(3, 7, 2, generator=DRAW)
    steps, before = [], torch.zeros(3, 2)
    for t in range(7):
        steps.append(cell(x[:, t], (before,))[0])
        before = target[:, t]
    sequential = torch.stack(steps, 1)
    assert_close(cell.forced(x, target), sequential)
    losses = [((y - target) ** 2).sum() for y in (cell.forced(x, target), sequential)]
    assert_close(*(torch.autograd.grad(loss, list(cell.parameters())) for loss in losses))
    with pytest.raises(ShapeMismatch, match=r"\(3, 7, 2\); got \(3, 6, 2\)"):
        cell.forced(x, target[:, :6])


def test_jordans_context_adds_up_outputs_and_forgets():
    cell = JordanCell(4, 5, outputs=2, memory=0.5)
    k = torch.randn(3, 2, generator=DRAW)
    y, (context,) = cell(X, (k,))
    assert_close(y, cell.inner(X, (k,))[0])
    assert_close(context, 0.5 * k + y)
    plain = JordanCell(4, 5, outputs=2, memory=0.0)
    y, (context,) = plain(X, (k,))
    assert_close(context, y)


def test_a_leaky_state_moves_by_its_leak():
    cell = LeakyIntegratorCell(4, 5, leak=0.3)
    drive = cell.inner(X, (H,))[0]
    assert_close(cell(X, (H,))[0], 0.7 * H + 0.3 * drive)


def test_an_unscaled_leaky_unit_settles_at_the_drive_over_the_leak():  # WE-84
    cell = LeakyIntegratorCell(1, 1, leak=0.1, scaled=False, activation="identity")
    with torch.no_grad():
        for parameter in cell.parameters():
            parameter.zero_()
        cell.inner.u.weight.fill_(1.0)
    y, _ = Recurrent(lambda *_: cell, 1, 1)(torch.ones(1, 300, 1))
    assert_close(y[0, -1].item(), 10.0, atol=1e-4, rtol=0)


# ---- dynamics and gradients ----


def test_a_contractive_net_settles_at_one_fixed_point():
    cell = ElmanCell(4, 20)
    with torch.no_grad():
        cell.w.weight.mul_(0.9 / torch.linalg.matrix_norm(cell.w.weight, 2))
    x = torch.randn(1, 1, 4, generator=DRAW).expand(6, 200, 4)
    begin = torch.randn(1, 6, 20, generator=DRAW)
    net = Recurrent(lambda *_: cell, 4, 20, fused=False)
    last = net(x, (begin,))[0][:, -1]
    assert_close(last, last[:1].expand_as(last), atol=1e-5, rtol=0)
    assert_close(cell(x[:, 0], (last,))[0], last, atol=1e-5, rtol=0)


def numeric_example():
    cell = ElmanCell(2, 2).double()
    cell.u.weight.data = torch.tensor([[0.5, -0.3], [0.2, 0.4]], dtype=torch.float64)
    cell.w.weight.data = torch.tensor([[0.1, 0.2], [-0.3, 0.4]], dtype=torch.float64)
    cell.u.bias.data = torch.tensor([0.1, -0.1], dtype=torch.float64)
    cell.w.bias.data.zero_()
    v = torch.tensor([[0.7, -0.6]], dtype=torch.float64, requires_grad=True)
    c = torch.tensor([0.05], dtype=torch.float64, requires_grad=True)
    x = torch.tensor([[[1.0, 0.0], [0.5, -0.2], [0.0, 1.0]]], dtype=torch.float64)
    y = torch.tensor([1.0, -1.0, 1.0], dtype=torch.float64)
    return cell, v, c, x, y


def test_gradients_through_time_are_those_of_the_worked_example():  # WE-80
    cell, v, c, x, y = numeric_example()
    h, _ = Recurrent(lambda *_: cell, 2, 2, fused=False)(x)
    out = tanh(h[0] @ v.T + c)[:, 0]
    loss = ((y - out) ** 2).sum()
    loss.backward()
    near = {"atol": 1e-6, "rtol": 0}
    expected = [[0.537050, 0.099668], [0.449153, -0.198574], [-0.192372, 0.085614]]
    assert_close(h[0], torch.tensor(expected).double(), **near)
    assert_close(loss.item(), 3.8102267432, atol=1e-9, rtol=0)
    slopes = {
        cell.u.weight: [[0.158316, -1.673485], [-0.150426, 1.549942]],
        cell.w.weight: [[-0.215674, 0.383570], [-0.000955, -0.374449]],
        cell.u.bias: [-0.916676, 0.621089],
        v: [[0.856199, -0.763797]],
        c: [-1.054354],
    }
    for parameter, slope in slopes.items():
        assert_close(parameter.grad, torch.tensor(slope).double(), **near)


def test_the_gradient_of_shared_weights_is_the_sum_over_steps():
    cell, v, c, x, y = numeric_example()
    h, _ = Recurrent(lambda *_: cell, 2, 2, fused=False)(x)
    ((y - tanh(h[0] @ v.T + c)[:, 0]) ** 2).sum().backward()
    copies = [numeric_example()[0] for _ in range(3)]  # one set of weights a step
    state, loss = (torch.zeros(1, 2, dtype=torch.float64),), 0.0
    for t in range(3):
        out, state = copies[t](x[:, t], state)
        loss = loss + ((y[t] - tanh(out @ v.detach().T + c.detach())) ** 2).sum()
    loss.backward()
    for name in ("u.weight", "w.weight", "u.bias"):
        total = sum(one.get_parameter(name).grad for one in copies)
        assert_close(cell.get_parameter(name).grad, total)


def test_a_copied_state_carries_no_gradient():
    through, copies = ElmanCell(2, 3), ElmanCell(2, 3, through_time=False)
    copies.load_state_dict(through.state_dict())
    x = torch.randn(1, 5, 2, generator=DRAW).requires_grad_()
    for cell, reaches in ((through, True), (copies, False)):
        net = Recurrent(lambda *_, c=cell: c, 2, 3, fused=False)
        (slope,) = torch.autograd.grad(net(x)[0][:, -1].sum(), x)
        assert bool((slope[0, :-1] != 0).any()) is reaches
    assert_close(through(X[:, :2])[0], copies(X[:, :2])[0])


@pytest.mark.parametrize("name", CELLS)
def test_every_cell_has_the_gradient_of_differences(name):
    torch.manual_seed(0)
    cell = CELLS[name](2, 3).double()
    x = torch.randn(2, 2, dtype=torch.float64, requires_grad=True)
    state = tuple(torch.randn(2, w, dtype=torch.float64, requires_grad=True) for w in cell.widths)
    assert torch.autograd.gradcheck(lambda x, *state: cell(x, state)[0], (x, *state))


@pytest.mark.parametrize(
    "make, said",
    [
        (lambda: LSTMCell(2, 3, without=["nif"]), r"`without` must name `nig`.*got 'nif'"),
        (lambda: GRUCell(2, 3, reset="befor"), r"got 'befor'. Did you mean `before`"),
        (lambda: JordanCell(2, 3, memory=1.0), r"`memory` must be from 0 to below 1; got 1.0"),
        (lambda: LeakyIntegratorCell(2, 3, leak=0.0), r"`leak` must be above 0.*got 0.0"),
    ],
)
def test_settings_that_make_no_sense_are_named(make, said):
    with pytest.raises(InvalidParameter, match=said):
        make()
