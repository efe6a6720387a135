"""Stacks of recurrent layers: truncation, residual paths, padding."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia.errors import InvalidParameter
from castalia.nets.sequence import CELL_NAMES, RecurrentStack, SequencePredictor, StepEmbedding


@pytest.mark.parametrize("cell", CELL_NAMES)
def test_parts_with_the_state_carried_equal_the_whole(cell):
    net, x = RecurrentStack(2, cell=cell, hidden=3, depth=2, residual=True), torch.randn(2, 7, 2)
    whole, _ = net(x)
    first, states = net(x[:, :3])
    rest, _ = net(x[:, 3:], states)
    assert_close(torch.cat([first, rest], dim=1), whole)


def test_truncated_gradients_stop_at_the_cut_and_outputs_do_not():
    whole = RecurrentStack(1, cell="elman", hidden=4)
    cut = RecurrentStack(1, cell="elman", hidden=4, truncate=3)
    cut.load_state_dict(whole.state_dict())
    x = torch.randn(1, 6, 1, requires_grad=True)
    assert_close(cut(x)[0], whole(x)[0])
    (gradient,) = torch.autograd.grad(cut(x)[0][:, -1].sum(), x)
    assert not gradient[0, :3].any()
    assert gradient[0, 3:].all()


def test_residual_layers_add_to_what_they_read():
    net, x = RecurrentStack(2, cell="gru", hidden=3, depth=2, residual=True), torch.randn(1, 4, 2)
    below, _ = net.layers[0](x)
    above, _ = net.layers[1](below)
    assert_close(net(x)[0], below + above)


@pytest.mark.parametrize("pool", ["last", "mean", "max"])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("cell", ["lstm", "peephole"])
def test_what_is_padded_changes_no_answer(cell, bidirectional, pool):
    stack = RecurrentStack(2, cell=cell, hidden=3, bidirectional=bidirectional)
    net = SequencePredictor(StepEmbedding(2), stack, 4, pool=pool).eval()
    x = torch.randn(3, 6, 2)
    lengths = torch.tensor([6, 2, 4])
    junk = x.clone()
    junk[1, 2:], junk[2, 4:] = 1e3, -1e3
    alone = torch.cat([net(row[None, :n]) for row, n in zip(x, lengths, strict=True)])
    assert_close(net((x, lengths)), alone)
    assert_close(net((junk, lengths)), alone)


def test_an_lstm_begins_by_keeping_its_state():
    for cell in ("lstm", "peephole"):
        net = RecurrentStack(2, cell=cell, hidden=3)
        kernel = net.layers[0].kernel
        bias = kernel.bias_ih_l0 if isinstance(kernel, nn.LSTM) else net.layers[0].cells[0].u.bias
        assert bias[3:6].tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    "how, words",
    [
        ({"cell": "lstn"}, "Did you mean `lstm`"),
        ({"cell": "gru", "without": ("nfg",)}, "`without` must be empty for the cell 'gru'"),
        ({"truncate": 3, "bidirectional": True}, "`truncate` must be None"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(how, words):
    with pytest.raises(InvalidParameter, match=words):
        RecurrentStack(2, **how)


def test_cells_that_begin_with_a_long_memory_keep_and_let_little_in():
    lstm = RecurrentStack(1, hidden=64, memory=100).layers[0].kernel.bias_ih_l0.detach()
    kept, let_in = lstm[64:128], lstm[:64]
    assert_close(let_in, -kept)
    assert bool((kept >= 0).all())
    assert 4 < kept.max().exp() <= 99
    gru = RecurrentStack(1, cell="gru", hidden=64, memory=100).layers[0].kernel.bias_ih_l0.detach()
    assert float(gru[64:128].mean()) > 2
