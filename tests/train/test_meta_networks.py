"""Networks that are divided are built without memory in all processes but the first."""

import pytest
import torch
from torch import nn

from castalia import Training
from castalia.train.meta_networks import build_network


class Keeps(nn.Module):
    """Has numbers that are neither weights nor buffers."""

    def __init__(self):
        super().__init__()
        self.layer, self.kept = nn.Linear(2, 2), [torch.arange(3)]


class Asks(nn.Module):
    """Needs its numbers while it is built."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.size = float(self.layer.weight.sum())


@pytest.mark.parametrize(
    "rank, strategy, build, empty",
    [
        ("1", "fsdp", lambda: nn.Linear(2, 2), True),
        ("0", "fsdp", lambda: nn.Linear(2, 2), False),
        ("1", "ddp", lambda: nn.Linear(2, 2), False),
        ("1", "fsdp", Keeps, False),
        ("1", "fsdp", Asks, False),
    ],
)
def test_only_the_first_process_holds_weights_before_they_are_divided(
    monkeypatch, rank, strategy, build, empty
):
    monkeypatch.setenv("RANK", rank)
    monkeypatch.setenv("WORLD_SIZE", "2")
    net = build_network(build, Training(strategy=strategy))
    assert [p.is_meta for p in net.parameters()] == [empty] * 2
