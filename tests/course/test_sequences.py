"""Recurrent networks: unfolding, gradients along time, summaries of a sequence; and attention."""

from functools import cache, partial

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia.errors import Diverged
from castalia.nets.language import TransformerEncoder
from castalia.nn import ElmanCell, GRUCell, LSTMCell, Recurrent
from castalia.objectives import SquaredError
from castalia.testing import train_tensors
from castalia.train import Training

DRAW = torch.Generator().manual_seed(0)
X = torch.randn(3, 5, 4, generator=DRAW, dtype=torch.float64)
CELLS = {"elman": ElmanCell, "lstm": LSTMCell, "gru": GRUCell}


# ---- unfolding ----


def unrolled(copies, x):
    """h(t) = f(h(t-1), x(t)), written out: one cell, with weights of its own, for each step."""
    state, outputs = None, []
    for t, cell in enumerate(copies):
        y, state = cell(x[:, t], state)
        outputs.append(y)
    return torch.stack(outputs, dim=1)


@pytest.mark.parametrize("kind", CELLS)
def test_the_unfolded_network_is_the_recursion_and_its_copies_share_one_gradient(kind):
    torch.manual_seed(0)
    net = Recurrent(CELLS[kind], 4, 6, fused=False).double()
    copies = [CELLS[kind](4, 6).double() for _ in range(5)]
    for cell in copies:
        cell.load_state_dict(net.cells[0].state_dict())
    folded, written_out = net(X)[0], unrolled(copies, X)
    assert_close(folded, written_out)
    for out in (folded, written_out):
        out.sin().sum().backward()
    for name, shared in net.cells[0].named_parameters():
        assert_close(shared.grad, sum(cell.get_parameter(name).grad for cell in copies))


# ---- gradients along time ----


def decay(sigma, steps=25):
    """Return the slope of log |ds_t / ds_1| by t, for a tanh network with |W| = sigma."""
    torch.manual_seed(0)
    cell = ElmanCell(1, 8).double()
    with torch.no_grad():
        u, s, v = torch.linalg.svd(cell.w.weight)
        cell.w.weight.copy_(u @ torch.diag(torch.full_like(s, sigma)) @ v)
        cell.w.bias.zero_()
        cell.u.bias.zero_()
    x, first, norms = torch.zeros(1, 1, dtype=torch.double), torch.full((8,), 1e-3), []
    step = torch.func.jacrev(lambda s: cell(x, (s[None],))[0][0])
    state, through = first.double(), torch.eye(8, dtype=torch.double)
    for _ in range(steps):
        through = step(state) @ through
        state = cell(x, (state[None],))[0][0].detach()
        norms.append(torch.linalg.matrix_norm(through, 2).log().item())
    return np.polyfit(np.arange(steps), norms, 1)[0]


@pytest.mark.parametrize("sigma", [0.5, 0.9])
def test_gradients_through_time_vanish_at_the_rate_of_the_largest_singular_value(sigma):
    assert decay(sigma) == pytest.approx(np.log(sigma), abs=0.01)  # tanh' is 1 near zero


def test_beyond_one_gradients_grow_until_the_units_are_full():
    assert decay(1.3, steps=10) > 0.2  # log 1.3 = 0.26


class LastState(nn.Module):
    """The last state of a recurrent network, read by a linear layer."""

    def __init__(self, cell, inputs, hidden, outputs, pool="last"):
        super().__init__()
        self.net, self.pool = Recurrent(cell, inputs, hidden), pool
        self.head = nn.Linear(hidden, outputs)

    def forward(self, x):
        h = self.net(x)[0]
        if self.pool == "last":
            return self.head(h[:, -1])
        return self.head(h.amax(dim=1) if self.pool == "max" else h.mean(dim=1))


def trained(clip):
    """Train a linear recurrent network, which begins by growing, to add up 15 numbers."""
    torch.manual_seed(0)
    net = LastState(partial(ElmanCell, activation="identity"), 1, 8, 1)
    with torch.no_grad():
        net.net.cells[0].w.weight.copy_(1.2 * torch.eye(8))
    x = torch.randn(64, 15, 1, generator=torch.Generator().manual_seed(0)) / 15**0.5
    y = x.sum(dim=1)  # of variance 1
    training = Training(optimizer="sgd", clip=clip, schedule="cosine", validation=0, verbose=False)
    state = train_tensors(
        net, SquaredError(), x, y, training=training, epochs=25, batch_size=8, lr=0.1
    )
    return state.history[-1]["loss"]


def test_clipping_survives_exploding_gradients_that_end_training_without_it():
    with pytest.raises(Diverged):
        trained(None)
    assert trained(1.0) < 0.15


# ---- one answer for a sequence ----


def first_symbol(rows, steps, seed):
    """One of four symbols, then noise; and which it was."""
    draw = torch.Generator().manual_seed(seed)
    y = torch.randint(4, (rows,), generator=draw)
    x = torch.zeros(rows, steps, 6)
    x[:, 1:, 4:] = torch.randn(rows, steps - 1, 2, generator=draw)
    x[torch.arange(rows), 0, y] = 1
    return x, y


def recall(cell, pool, steps, updates):
    """Return the accuracy on new sequences of a network that was to remember the first symbol."""
    torch.manual_seed(0)
    net = LastState(cell, 6, 16, 4, pool)
    adam = torch.optim.Adam(net.parameters(), lr=0.03)
    for step in range(updates):
        x, y = first_symbol(32, steps, 10 + step)
        adam.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        adam.step()
    x, y = first_symbol(400, steps, 1)
    return (net(x).argmax(dim=1) == y).float().mean().item()


def test_the_last_state_recalls_the_first_of_twenty_symbols():
    assert recall("gru", "last", 20, updates=100) > 0.98


def test_pooled_states_recall_what_the_last_of_sixty_has_lost():
    last, pooled = (recall("lstm", pool, 60, updates=40) for pool in ("last", "max"))
    assert pooled > 0.95
    assert last < 0.5


# ---- recurrence against attention ----

SYMBOLS, LENGTH = 6, 20


class Reader(nn.Module):
    """A recurrent network with an answer at each step."""

    def __init__(self):
        super().__init__()
        self.tokens, self.net = nn.Embedding(SYMBOLS, 8), Recurrent("gru", 8, 32)
        self.head = nn.Linear(32, SYMBOLS)

    def forward(self, ids):
        return self.head(self.net(self.tokens(ids))[0])


def attending():
    return TransformerEncoder(
        SYMBOLS, SYMBOLS, dim=32, depth=1, heads=2, pool="none", pre_norm=True
    )


@cache
def lagged(kind, lag):
    """Train to say the symbol some steps before; return accuracies at this length and at thrice."""
    torch.manual_seed(0)
    net = {"recurrent": Reader, "attention": attending}[kind]()
    adam, draw = torch.optim.Adam(net.parameters(), lr=1e-2), torch.Generator().manual_seed(0)
    for _ in range(100):
        x = torch.randint(SYMBOLS, (32, LENGTH), generator=draw)
        adam.zero_grad()
        loss = nn.functional.cross_entropy(net(x)[:, lag:].flatten(0, 1), x[:, :-lag].flatten())
        loss.backward()
        adam.step()
    found = []
    with torch.no_grad():
        for length in (LENGTH, 3 * LENGTH):
            x = torch.randint(SYMBOLS, (64, length), generator=draw)
            hits = net(x)[:, lag:].argmax(dim=-1) == x[:, :-lag]
            found.append(hits.float().mean().item())
    return found


def test_attention_recalls_any_lag_and_a_recurrent_net_only_a_short_one():
    short = {kind: lagged(kind, 3)[0] for kind in ("recurrent", "attention")}
    long = {kind: lagged(kind, 12)[0] for kind in ("recurrent", "attention")}
    assert min(*short.values(), long["attention"]) > 0.9
    assert long["recurrent"] < 0.5


def test_a_recurrent_net_goes_on_beyond_the_length_it_was_trained_on_and_attention_does_not():
    recurrent, attention = lagged("recurrent", 3), lagged("attention", 3)
    assert recurrent[1] > 0.9
    assert attention[1] < attention[0] - 0.2


def reversing(pre_norm, depth, steps=80):
    """Train an encoder to reverse six symbols, at a large rate from the first step on."""
    torch.manual_seed(0)
    net = TransformerEncoder(
        4, 4, dim=16, depth=depth, heads=1, hidden=16, pool="none", pre_norm=pre_norm
    )
    adam, draw = torch.optim.Adam(net.parameters(), lr=2e-2), torch.Generator().manual_seed(0)
    losses = []
    for _ in range(steps):
        x = torch.randint(4, (16, 6), generator=draw)
        adam.zero_grad()
        loss = nn.functional.cross_entropy(net(x).flatten(0, 1), x.flip(1).flatten())
        loss.backward()
        adam.step()
        losses.append(loss.item())
    return np.mean(losses[-10:])


def test_norms_before_each_part_train_a_deep_stack_without_warm_up():
    assert reversing(False, depth=1) < 0.3
    assert reversing(False, depth=8) > 1.0  # chance is log 4 = 1.39
    assert reversing(True, depth=8) < 0.3
