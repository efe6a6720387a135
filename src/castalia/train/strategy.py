"""How many processes train together, and what they exchange.

Every process walks through the same batches and takes its share of each; gradients are summed with
each share's weight, so the step equals that of one process on the whole batch.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.optim import Optimizer

from castalia.optim import without_dynamo
from castalia.train.training import Training

__all__ = ["DataParallel", "FullyShardedParallel", "Single", "build_strategy"]

BUCKET = 25 * 2**20  # bytes of gradient sent at a time


class Single:
    """One process."""

    name, rank, world = "single", 0, 1

    def prepare(self, net: nn.Module) -> None:
        """Make the network ready; called once before the optimizers are made."""

    def share(self, index: Tensor) -> Tensor:
        """Return this process's part of a batch."""
        return index

    def scale(self, part: Any, whole: Any) -> Any:
        """Return the factor of the local mean loss, from the weights of the part and the whole."""
        return part / whole

    def sync(self, parameters: Sequence[Tensor]) -> None:
        """Sum gradients over the processes."""

    def total(self, value: Tensor) -> Tensor:
        """Sum a number over the processes."""
        return value

    def state_dict(self, net: nn.Module) -> dict[str, Tensor]:
        """Return the whole network's weights."""
        return net.state_dict()

    def whole_weights(self, net: nn.Module) -> dict[str, Tensor] | None:
        """Return the weights for a network of one process, or None when this one is whole."""
        return None

    def load_state_dict(self, net: nn.Module, state: dict[str, Any]) -> None:
        """Put the whole network's weights in place."""
        net.load_state_dict(state)

    def optimizer_state(self, net: nn.Module, optimizer: Optimizer) -> dict[str, Any]:
        """Return the whole optimizer's state."""
        with without_dynamo():
            return optimizer.state_dict()

    def load_optimizer_state(
        self, net: nn.Module, optimizer: Optimizer, state: dict[str, Any]
    ) -> None:
        """Put the whole optimizer's state in place."""
        with without_dynamo():
            optimizer.load_state_dict(state)

    def broadcast(self, tensors: Sequence[Tensor]) -> None:
        """Give every process the values of the first, which are those that checkpoints hold."""

    def gather(self, value: Tensor) -> list[Tensor]:
        """Return this tensor of every process, by rank."""
        return [value]

    def agree(self, number: int) -> int:
        """Return the first process's number."""
        return number

    def barrier(self) -> None:
        """Wait for the others."""


class DataParallel(Single):
    """The network in every process, the batch divided among them."""

    name = "ddp"

    def __init__(self) -> None:
        self.rank, self.world = dist.get_rank(), dist.get_world_size()

    def prepare(self, net: nn.Module) -> None:
        """Start every process from the weights of the first."""
        self.broadcast([*net.parameters(), *net.buffers()])

    def share(self, index: Tensor) -> Tensor:
        """Return the rank-th piece of a batch."""
        return index.tensor_split(self.world)[self.rank]

    def sync(self, parameters: Sequence[Tensor]) -> None:
        """Sum gradients over the processes, in buckets sent without waiting in between."""
        waiting = []
        for bucket in _buckets(parameters):
            flat = torch.cat([g.flatten() for g in bucket])
            waiting.append((dist.all_reduce(flat, async_op=True), flat, bucket))
        for work, flat, bucket in waiting:
            work.wait()
            for gradient, piece in zip(
                bucket, flat.split([g.numel() for g in bucket]), strict=True
            ):
                gradient.copy_(piece.view_as(gradient))

    def total(self, value: Tensor) -> Tensor:
        """Sum a number over the processes."""
        dist.all_reduce(value)
        return value

    def broadcast(self, tensors: Sequence[Tensor]) -> None:
        """Give every process the values of the first, which are those that checkpoints hold."""
        for tensor in tensors:
            dist.broadcast(tensor.detach(), src=0)

    def gather(self, value: Tensor) -> list[Tensor]:
        """Return this tensor of every process, by rank."""
        found = [torch.empty_like(value) for _ in range(self.world)]
        dist.all_gather(found, value)
        return found

    def agree(self, number: int) -> int:
        """Return the first process's number."""
        on_gpu = dist.get_backend() == "nccl"
        shared = torch.tensor([number], device="cuda" if on_gpu else "cpu")
        dist.broadcast(shared, src=0)
        return int(shared)

    def barrier(self) -> None:
        """Wait for the others."""
        dist.barrier()


class FullyShardedParallel(DataParallel):
    """Weights, gradients and optimizer state divided among the processes (FSDP2)."""

    name = "fsdp"

    def prepare(self, net: nn.Module) -> None:
        """Shard every child with parameters of its own, then the rest."""
        from torch.distributed.fsdp import fully_shard

        super().prepare(net)
        for child in net.children():
            if any(p.requires_grad for p in child.parameters()):
                fully_shard(child)
        fully_shard(net)

    def scale(self, part: Any, whole: Any) -> Any:
        """Undo the mean over processes that FSDP takes when it reduces gradients."""
        return self.world * part / whole

    def sync(self, parameters: Sequence[Tensor]) -> None:
        """Do nothing: FSDP has reduced the gradients in the backward pass."""

    def state_dict(self, net: nn.Module) -> dict[str, Tensor]:
        """Gather the whole network's weights."""
        from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict

        whole: Any = get_model_state_dict(net, options=StateDictOptions(full_state_dict=True))
        return whole

    def whole_weights(self, net: nn.Module) -> dict[str, Tensor] | None:
        """Gather the weights: what is left in this process is a shard."""
        return self.state_dict(net)

    def load_state_dict(self, net: nn.Module, state: dict[str, Any]) -> None:
        """Divide the whole network's weights among the processes."""
        from torch.distributed.checkpoint.state_dict import StateDictOptions, set_model_state_dict

        # torch writes its shards into the dict it is given
        set_model_state_dict(net, dict(state), options=StateDictOptions(full_state_dict=True))

    def optimizer_state(self, net: nn.Module, optimizer: Optimizer) -> dict[str, Any]:
        """Gather the whole optimizer's state."""
        from torch.distributed.checkpoint.state_dict import (
            StateDictOptions,
            get_optimizer_state_dict,
        )

        return get_optimizer_state_dict(
            net, optimizer, options=StateDictOptions(full_state_dict=True)
        )

    def load_optimizer_state(
        self, net: nn.Module, optimizer: Optimizer, state: dict[str, Any]
    ) -> None:
        """Divide the whole optimizer's state among the processes."""
        from torch.distributed.checkpoint.state_dict import (
            StateDictOptions,
            set_optimizer_state_dict,
        )

        set_optimizer_state_dict(
            net, optimizer, state, options=StateDictOptions(full_state_dict=True)
        )


def _buckets(parameters: Sequence[Tensor]) -> list[list[Tensor]]:
    """Group gradients into buckets; a missing one is zero: every process must send the same."""
    buckets: list[list[Tensor]] = [[]]
    size = 0
    for parameter in parameters:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        gradient = parameter.grad
        if size + gradient.nbytes > BUCKET and buckets[-1]:
            buckets.append([])
            size = 0
        buckets[-1].append(gradient)
        size += gradient.nbytes
    return buckets


def _leave() -> None:
    """Leave the process group at the end of the program, unless somebody else did."""
    if dist.is_initialized():
        dist.destroy_process_group()


def build_strategy(training: Training, device: torch.device) -> Single:
    """Return the strategy of a training; joins the process group under ``torchrun``."""
    launched = int(os.environ.get("WORLD_SIZE", "1")) > 1
    name = training.strategy
    if name == "auto":
        name = "ddp" if launched else "single"
    if name == "single":
        return Single()
    if not dist.is_initialized():
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
        atexit.register(_leave)
    return DataParallel() if name == "ddp" else FullyShardedParallel()
