"""Loaders that are trained on, read once more, and others with the same rows."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from castalia.diagnose.script import Session


@pytest.mark.parametrize("gradients", [False, True], ids=["no_grad", "with gradients"])
@pytest.mark.parametrize("read", ["the same", "a copy", "others"])
def test_training_rows_are_a_leak_where_another_loader_gives_them(read, gradients):
    torch.manual_seed(0)
    x = torch.randn(128, 8)
    rows = TensorDataset(x, (x.sum(1) > 0).long())
    fresh = torch.randn(128, 8)
    others = {
        "the same": rows,
        "a copy": copy.copy(rows),
        "others": TensorDataset(fresh, rows[:][1]),
    }
    session = Session()
    session.start()
    try:
        net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
        optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
        loader, again = DataLoader(rows, 16, shuffle=True), DataLoader(others[read], 32)
        for _ in range(4):
            net.train()
            for xs, ys in loader:
                optimizer.zero_grad()
                F.cross_entropy(net(xs), ys).backward()
                optimizer.step()
            net.train(gradients)  # as those do who call neither eval() nor no_grad()
            with torch.set_grad_enabled(gradients):
                right = [net(xs).argmax(1) == ys for xs, ys in again]
        assert len(right) == 4
    finally:
        session.stop()
    assert ("CST206" in session.diagnosis().codes) == (read == "a copy")


def test_rows_of_a_second_loader_that_the_loss_is_of_are_no_validation():
    torch.manual_seed(0)
    x = torch.randn(128, 8)
    rows = TensorDataset(x, (x.sum(1) > 0).long())
    session = Session()
    session.start()
    try:
        net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
        optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
        loaders = [DataLoader(one, 16, shuffle=True) for one in (rows, copy.copy(rows))]
        for _ in range(4):
            for (a, ya), (b, _) in zip(*loaders, strict=True):
                optimizer.zero_grad()
                near = (net(a).mean(0) - net(b).mean(0)).square().sum()
                (F.cross_entropy(net(a), ya) + near).backward()
                optimizer.step()
    finally:
        session.stop()
    assert not any(len(record.validation) for record in session.records)


def test_a_step_that_turns_to_a_second_loader_is_no_validation_on_the_first():
    torch.manual_seed(0)
    x = torch.randn(128, 8)
    rows = TensorDataset(x, (x.sum(1) > 0).long())
    session = Session()
    session.start()
    try:
        net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
        optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
        for _ in range(40):
            a, ya = next(iter(DataLoader(copy.copy(rows), 32, shuffle=True)))
            optimizer.zero_grad()
            ours = F.cross_entropy(net(a), ya)
            b, _ = next(iter(DataLoader(copy.copy(rows), 32, shuffle=True)))
            (ours + net(b).square().mean()).backward()
            optimizer.step()
    finally:
        session.stop()
    assert not any(len(record.validation) for record in session.records)
