"""The transformer of the notes on tasks that need order."""

import torch
from torch import nn

from castalia.nets.language import Transformer, generate

SYMBOLS, LENGTH, START = 5, 4, 8


def tasks(rows, seed):
    """A token that says copy, reverse or sort, then symbols; and the answer."""
    draw = torch.Generator().manual_seed(seed)
    x = torch.randint(SYMBOLS, (rows, LENGTH), generator=draw)
    task = torch.randint(3, (rows,), generator=draw)
    answers = torch.stack([x, x.flip(1), x.sort(1).values])
    return torch.cat([task[:, None] + SYMBOLS, x], 1), answers[task, torch.arange(rows)], task


def test_one_transformer_learns_to_copy_to_reverse_and_to_sort():
    torch.manual_seed(0)
    net = Transformer(9, dim=32, depth=1, heads=4, dropout=0.0)
    adam = torch.optim.Adam(net.parameters(), lr=5e-3)
    warm = torch.optim.lr_scheduler.LambdaLR(
        adam, lambda step: min((step + 1) / 30, max(0.05, 1 - step / 250))
    )
    for step in range(250):
        x, y, _ = tasks(64, 100 + step)
        given = torch.cat([torch.full((64, 1), START), y[:, :-1]], 1)
        adam.zero_grad()
        nn.functional.cross_entropy(net(x, given).flatten(0, 1), y.flatten()).backward()
        adam.step()
        warm.step()
    x, y, task = tasks(600, 1)
    right = (generate(net, x, tokens=LENGTH, start=START) == y).float().mean(1)
    for number in range(3):
        assert right[task == number].mean() > 0.98
