"""Which part of an LSTM matters: streams that must be counted and forgotten."""

from functools import cache, partial

import torch
from torch import nn

from castalia.nn import LSTMCell, Recurrent

PARTS = ("nig", "nfg", "nog", "niaf", "noaf")


def streams(rows, steps, seed):
    """Bits and resets, and the number of ones since the last reset, over 4."""
    draw = torch.Generator().manual_seed(seed)
    bits = (torch.rand(rows, steps, generator=draw) < 0.5).float()
    resets = torch.rand(rows, steps, generator=draw) < 0.12
    count, counts = torch.zeros(rows), []
    for t in range(steps):
        count = torch.where(resets[:, t], 0.0, count + bits[:, t])
        counts.append(count)
    return torch.stack([bits, resets.float()], -1), torch.stack(counts, 1) / 4


@cache
def errors(part):
    """Squared errors of an LSTM without a part: on new and on longer streams."""
    torch.manual_seed(0)
    net = Recurrent(partial(LSTMCell, without=[part] if part else []), 2, 8)
    head = nn.Linear(8, 1)
    adam = torch.optim.Adam([*net.parameters(), *head.parameters()], lr=0.02)
    x, y = streams(64, 20, 0)
    for _ in range(200):
        adam.zero_grad()
        (head(net(x)[0]).squeeze(-1) - y).pow(2).mean().backward()
        adam.step()
    found = []
    with torch.no_grad():
        for steps in (20, 60):
            x, y = streams(64, steps, 1)
            found.append((head(net(x)[0]).squeeze(-1) - y).pow(2).mean().item())
    return found


def test_an_lstm_misses_its_forget_gate_most():
    short = {part: errors(part)[0] for part in PARTS}
    others = [error for part, error in short.items() if part != "nfg"]
    assert short["nfg"] > 1.5 * max(others)
    assert short["nfg"] > 3 * errors("")[0]


def test_without_a_forget_gate_long_streams_are_lost():
    whole, lost = errors(""), errors("nfg")
    assert lost[1] > 1.5 * whole[1]
    assert lost[1] - lost[0] > 1.5 * (whole[1] - whole[0])
