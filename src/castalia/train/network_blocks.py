"""The blocks that a network is a list of: divided, or computed again, each by itself."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from torch import nn
from torch.utils.checkpoint import checkpoint

from castalia.errors import InvalidParameter

__all__ = ["blocks", "recompute", "remember"]

LISTS = (nn.ModuleList, nn.ModuleDict, nn.Sequential)


def blocks(net: nn.Module) -> Iterator[nn.Module]:
    """Yield what stands in lists of modules and has weights that nothing outside it uses.

    >>> [type(block).__name__ for block in blocks(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))]
    ['Linear']
    """
    users: dict[int, int] = {}
    for module in net.modules():
        for parameter in module.parameters(recurse=False):
            users[id(parameter)] = users.get(id(parameter), 0) + 1

    def found(module: nn.Module, listed: bool) -> Iterator[nn.Module]:
        own = list(module.parameters())
        if isinstance(module, LISTS) or not listed:
            for child in module.children():
                yield from found(child, isinstance(module, LISTS))
        elif own and all(users[id(p)] == 1 for p in own) and any(p.requires_grad for p in own):
            yield module

    yield from found(net, False)


def recompute(net: nn.Module) -> None:
    """Let each block keep its inputs only: what is inside is computed again for its gradient."""
    found = list(blocks(net))
    if not found:
        raise InvalidParameter(
            f"Training: `recompute=True` needs a network with a list of blocks; "
            f"{type(net).__name__} has none. Use recompute=False."
        )
    for block in found:
        block.forward = partial(checkpoint, block.forward, use_reentrant=False)


def remember(net: nn.Module) -> None:
    """Let blocks keep what they compute again, as torch does."""
    for module in net.modules():
        own: dict[str, Any] = module.__dict__
        if getattr(own.get("forward"), "func", None) is checkpoint:
            del own["forward"]
