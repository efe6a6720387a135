"""A cell along time equals torch's modules, fused or step by step."""

from functools import partial

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.nn.recurrent import CELLS, ElmanCell, LSTMCell, OutputRecurrentCell, Recurrent

DRAW = torch.Generator().manual_seed(0)
X = torch.randn(3, 6, 4, generator=DRAW)
THEIRS = {"elman": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}
SHAPES = [(1, False), (1, True), (3, False), (2, True)]


def step_by_step(kind, theirs, depth, bidirectional, **settings):
    """Our loop over cells, with the weights of a module of torch."""
    net = Recurrent(kind, 4, 5, depth=depth, bidirectional=bidirectional, fused=False, **settings)
    suffixes = [f"_l{i}{way}" for i in range(depth) for way in ("", "_reverse")[: net.directions]]
    for cell, suffix in zip(net.cells, suffixes, strict=True):
        for letter, name in (("u", "ih"), ("w", "hh")):
            getattr(cell, letter).weight.data.copy_(getattr(theirs, f"weight_{name}{suffix}"))
            getattr(cell, letter).bias.data.copy_(getattr(theirs, f"bias_{name}{suffix}"))
    return net


def states(found):
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize("depth, bidirectional", SHAPES)
@pytest.mark.parametrize("kind", THEIRS)
def test_steps_and_the_fused_kernel_equal_torch(kind, depth, bidirectional):
    theirs = THEIRS[kind](4, 5, depth, bidirectional=bidirectional, batch_first=True)
    fused = Recurrent(kind, 4, 5, depth=depth, bidirectional=bidirectional)
    fused.kernel.load_state_dict(theirs.state_dict())
    expected, last = theirs(X)
    for net in (fused, step_by_step(kind, theirs, depth, bidirectional)):
        out, state = net(X)
        assert_close(out, expected)
        assert_close(state, states(last))


@pytest.mark.parametrize("kind", THEIRS)
def test_the_kernel_is_used_where_there_is_one(kind):
    net = Recurrent(kind, 4, 5)
    assert type(net.kernel) is THEIRS[kind]
    assert len(net.cells) == 0


def test_other_cells_run_step_by_step():
    for make in (partial(LSTMCell, peephole=True), partial(ElmanCell, through_time=False)):
        assert Recurrent(make, 4, 5).kernel is None
    assert Recurrent(partial(ElmanCell, activation="relu"), 4, 5).kernel.nonlinearity == "relu"


@pytest.mark.parametrize("merge", ["sum", "mean"])
def test_two_directions_merge(merge):
    net = Recurrent("lstm", 4, 5, bidirectional=True, merge=merge)
    both, _ = net.kernel(X)
    total = both[..., :5] + both[..., 5:]
    assert_close(net(X)[0], total if merge == "sum" else total / 2)
    assert net.outputs == 5


@pytest.mark.parametrize("kind", [*CELLS])
def test_padding_changes_no_output_and_no_last_state(kind):
    net = Recurrent(kind, 4, 5, depth=2, bidirectional=True)
    lengths = torch.tensor([6, 2, 4])
    other = torch.where((torch.arange(6) < lengths[:, None])[..., None], X, 100.0)
    out, state = net(other, lengths=lengths)
    for row, length in enumerate(lengths.tolist()):
        alone, last = net(X[row : row + 1, :length])
        assert_close(out[row, :length], alone[0])
        assert (out[row, length:] == 0).all()
        assert_close(tuple(s[:, row] for s in state), tuple(s[:, 0] for s in last))


@pytest.mark.parametrize("kind", [*CELLS])
def test_a_sequence_can_be_read_in_two_parts(kind):
    net = Recurrent(kind, 4, 5, depth=2)
    whole, last = net(X)
    first, state = net(X[:, :2])
    second, end = net(X[:, 2:], state)
    assert_close(torch.cat([first, second], 1), whole)
    assert_close(end, last)


@pytest.mark.parametrize("fused", [True, False])
def test_a_learned_first_state_begins_at_zero_and_gets_a_gradient(fused):
    net = Recurrent("lstm", 4, 5, depth=2, learned_state=True, fused=fused)
    plain, _ = net(X, tuple(torch.zeros(2, 3, 5) for _ in range(2)))
    out, _ = net(X)
    assert_close(out, plain)
    out.sum().backward()
    assert all((part.grad != 0).all() for part in net.first_state)
    assert Recurrent("lstm", 4, 5).first_state is None
    with torch.no_grad():
        net.first_state[0].add_(1.0)
    assert not torch.allclose(net(X)[0], plain, atol=1e-2)


@pytest.mark.parametrize("kind", THEIRS)
def test_every_layer_and_direction_begins_at_its_own_learned_state(kind):
    theirs = THEIRS[kind](4, 5, 2, bidirectional=True, batch_first=True)
    net = step_by_step(kind, theirs, 2, True, learned_state=True)
    for part in net.first_state:
        nn.init.normal_(part, generator=torch.Generator().manual_seed(1))
    begin = tuple(part.expand(-1, len(X), -1).contiguous() for part in net.first_state)
    expected, last = theirs(X, begin if len(begin) > 1 else begin[0])
    out, state = net(X)
    assert_close(out, expected)
    assert_close(state, states(last))


def test_dropout_falls_between_layers_only():
    torch.manual_seed(0)
    deep = Recurrent("output", 4, 5, depth=2, dropout=0.5)
    assert not deep(X)[0].equal(deep(X)[0])
    assert deep.eval()(X)[0].equal(deep(X)[0])
    flat = Recurrent("output", 4, 5, dropout=0.5)
    assert flat(X)[0].equal(flat(X)[0])


def test_a_bidirectional_net_sees_the_future_and_a_plain_one_does_not():
    later = X.clone()
    later[:, 4:] += 1.0
    plain, both = (Recurrent("gru", 4, 5, bidirectional=flag) for flag in (False, True))
    assert_close(plain(X)[0][:, :4], plain(later)[0][:, :4])
    assert not torch.allclose(both(X)[0][:, :4], both(later)[0][:, :4], atol=1e-3)


@pytest.mark.parametrize(
    "make, said",
    [
        (lambda: Recurrent("lstn", 4, 5), r"`cell` must be `elman`.*Did you mean `lstm`"),
        (lambda: Recurrent("lstm", 4, 5, merge="max"), r"`merge` must be .*got 'max'"),
        (lambda: Recurrent("lstm", 4, 5, depth=0), r"`depth` must be .*got 0"),
    ],
)
def test_settings_that_make_no_sense_are_named(make, said):
    with pytest.raises(InvalidParameter, match=said):
        make()


def test_inputs_of_another_width_are_reported():
    with pytest.raises(ShapeMismatch, match=r"\(B, T, 4\); got \(3, 6, 2\)"):
        Recurrent("lstm", 4, 5)(X[..., :2])


# ---- learning ----


def learn(net, x, y, *, steps=120, lr=0.05, seed=0):
    """Train a net with a linear head on bits at each step; return the accuracy of each step."""
    torch.manual_seed(seed)
    net = net()
    head = nn.Linear(net.outputs, 1)
    adam = torch.optim.Adam([*net.parameters(), *head.parameters()], lr=lr)
    for _ in range(steps):
        adam.zero_grad()
        logits = head(net(x)[0]).squeeze(-1)
        nn.functional.binary_cross_entropy_with_logits(logits, y.float()).backward()
        adam.step()
    with torch.no_grad():
        return ((head(net(x)[0]).squeeze(-1) > 0) == y).float().mean(0)


def bits(rows, steps):
    return torch.randint(2, (rows, steps), generator=torch.Generator().manual_seed(0)).bool()


def test_an_rnn_learns_the_parity_of_short_strings():
    x = torch.tensor([[int(b) for b in f"{n:05b}"] for n in range(32)]).bool()
    parity = x.long().cumsum(1) % 2 == 1
    accuracy = learn(lambda: Recurrent("elman", 1, 12), x[..., None].float(), parity, steps=300)
    assert (accuracy == 1).all()


def test_copied_contexts_solve_the_temporal_xor():
    x = bits(64, 8)
    xor = x.clone()
    xor[:, 1:] = x[:, 1:] ^ x[:, :-1]  # of this bit and the one before
    make = partial(ElmanCell, through_time=False)
    inputs = x[..., None].float()
    accuracy = learn(lambda: Recurrent(make, 1, 16), inputs, xor, steps=200, lr=0.03)
    assert (accuracy[1:] > 0.98).all()


def test_both_directions_solve_what_needs_the_future():
    x = bits(64, 6)
    future = x.roll(-1, 1)
    future[:, -1] = False
    one, both = (
        learn(partial(Recurrent, "gru", 1, 8, bidirectional=flag), x[..., None].float(), future)
        for flag in (False, True)
    )
    assert (both > 0.98).all()
    assert one[:-1].mean() < 0.75


def test_a_fed_back_output_remembers_less_than_a_fed_back_state():
    x = bits(64, 7)
    lag = 2
    delayed = x.roll(lag, 1)
    delayed[:, :lag] = False
    wide = learn(lambda: Recurrent("elman", 1, 16), x[..., None].float(), delayed)
    narrow = learn(
        lambda: Recurrent(partial(OutputRecurrentCell, outputs=1), 1, 16),
        x[..., None].float(),
        delayed,
    )
    assert wide[lag:].mean() > 0.98
    assert narrow[lag:].mean() < wide[lag:].mean() - 0.1


@pytest.mark.parametrize("cell", ["elman", "lstm", "gru"])
def test_sequences_too_long_for_one_call_of_a_kernel_are_read_in_parts(monkeypatch, cell):
    torch.manual_seed(0)
    net = Recurrent(cell, 3, 4, depth=2)
    x = torch.randn(2, 11, 3)
    whole, last = net(x)
    monkeypatch.setattr("castalia.nn.recurrent.recurrent_network.LONGEST", 4)
    parts, same = net(x)
    assert_close(parts, whole)
    for one, other in zip(same, last, strict=True):
        assert_close(one, other)
