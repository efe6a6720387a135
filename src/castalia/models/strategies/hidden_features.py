"""What a network knows before its last layer, whatever its class."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d

from castalia.errors import InvalidParameter

__all__ = ["WithPart", "copy_trunk", "features_of", "last_layer", "maps_of"]

PLACES = 7  # of a side of a map, at most


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


def maps_of(net: nn.Module, x: Tensor) -> list[Tensor]:
    """Return the last maps at every resolution, averaged to 7 x 7 at most, (B, C h w) each.

    >>> net = nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
    >>> [tuple(maps.shape) for maps in maps_of(net, torch.zeros(5, 1, 8, 8))]  # 7 x 7 and 4 x 4
    [(5, 98), (5, 32)]
    """
    found: dict[torch.Size, Tensor] = {}

    def keep(module: nn.Module, _: Any, output: Any) -> None:
        if isinstance(output, Tensor) and output.ndim == 4:
            found[output.shape[2:]] = output

    handles = [module.register_forward_hook(keep) for module in net.modules()]
    try:
        net(x)
    finally:
        for handle in handles:
            handle.remove()
    return [
        adaptive_avg_pool2d(maps, (min(PLACES, height), min(PLACES, width))).flatten(1)
        for (height, width), maps in found.items()
    ]


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
