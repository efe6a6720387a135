"""What a network knows just before its last layer, whatever its class."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from castalia.errors import InvalidParameter

__all__ = ["WithPart", "copy_trunk", "features_of", "last_layer"]


def last_layer(net: nn.Module) -> nn.Linear:
    """Return the last dense layer, which gives the scores; what lies before it is the trunk.

    >>> last_layer(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)))
    Linear(in_features=3, out_features=1, bias=True)
    """
    found = [module for module in net.modules() if isinstance(module, nn.Linear)]
    if not found:
        raise InvalidParameter(
            f"last_layer: the network must end in a dense layer; got a {type(net).__name__}."
        )
    return found[-1]


def features_of(net: nn.Module, x: Any) -> tuple[Tensor, Tensor]:
    """Return what the last layer receives, (B, H), and the outputs, in one pass."""
    seen: list[Tensor] = []
    handle = last_layer(net).register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    try:
        outputs = net(x)
    finally:
        handle.remove()
    return seen[0], outputs


class WithPart(nn.Module):
    """A network and a part that is trained beside it and left behind afterwards."""

    def __init__(self, net: nn.Module, part: nn.Module) -> None:
        super().__init__()
        self.net, self.part = net, part

    def forward(self, x: Any) -> Any:
        """Return the network's outputs."""
        return self.net(x)


@torch.no_grad()
def copy_trunk(net: nn.Module, source: nn.Module, *, freeze: bool = False) -> nn.Module:
    """Take all weights but those of the last layer from a network of the same kind."""
    head = {id(p) for p in last_layer(net).parameters()}
    mine = dict(net.named_parameters())
    for name, value in source.named_parameters():
        if id(mine[name]) not in head:
            mine[name].copy_(value)
            mine[name].requires_grad_(not freeze)
    statistics = dict(source.named_buffers())
    for name, buffer in net.named_buffers():
        buffer.copy_(statistics[name])
    return net
