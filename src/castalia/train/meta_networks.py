"""Networks that are larger than a process should hold: built without memory, filled part by part.

The first process draws the weights, as it does alone; the others build the network on torch's
``meta`` device, which has shapes and no numbers, and get their share of one block after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from castalia.train.training import Training
from castalia.utils.process_ranks import rank_and_world

__all__ = ["build_network", "fill"]


def build_network(build: Callable[[], nn.Module], training: Training) -> nn.Module:
    """Build a network; where it will be divided, only the first process holds its weights.

    Parameters
    ----------
    build
        Builds it; called again where the network cannot be built without memory.
    training
        Its ``strategy`` decides.
    """
    if training.strategy != "fsdp" or not rank_and_world()[0]:
        return build()
    try:
        with torch.device("meta"):
            net = build()
    except (NotImplementedError, RuntimeError, TypeError, ValueError):  # it needs numbers
        return build()
    return build() if any(map(_hides, net.modules())) else net


def _hides(module: nn.Module) -> bool:
    """Whether a module keeps numbers that are neither weights nor buffers: nobody sends them."""
    known = ("_parameters", "_buffers", "_modules")
    kept = [value for name, value in vars(module).items() if name not in known]
    return any(tensor.is_meta for tensor in _tensors(kept))


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _tensors(item)


def fill(part: nn.Module, device: torch.device) -> None:
    """Put the first process's weights and buffers of a part of a network on a device.

    What has been divided before is left alone, and what modules share stays shared.

    Parameters
    ----------
    part
        The part.
    device
        Where it will be trained.
    """
    from torch.distributed.tensor import DTensor  # takes a second, which most trainings do not need

    sent: dict[int, tuple[Tensor, Tensor]] = {}  # before and after, by the id of what was before
    for module in part.modules():
        for name, tensor in [*module._parameters.items(), *module._buffers.items()]:
            if tensor is None or isinstance(tensor, DTensor):
                continue
            if id(tensor) not in sent:
                sent[id(tensor)] = tensor, _received(tensor, device)
            if tensor.is_meta:
                setattr(module, name, sent[id(tensor)][1])


def _received(tensor: Tensor, device: torch.device) -> Tensor:
    """Return what the first process holds, on a device: in place, unless there was no place."""
    if not tensor.is_meta:
        tensor.data = tensor.data.to(device)
        dist.broadcast(tensor.data, src=0)
        return tensor
    here = torch.empty_like(tensor, device=device)
    dist.broadcast(here.data, src=0)
    weight = isinstance(tensor, nn.Parameter)
    return nn.Parameter(here, requires_grad=tensor.requires_grad) if weight else here
