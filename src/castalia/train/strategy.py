"""How many processes train together, and what they exchange.

Every process walks through the same batches and takes its share of each; gradients are summed with
each share's weight, and batch normalisation takes the moments of the whole batch, so the step
equals that of one process on the whole batch.
"""

from __future__ import annotations

import atexit
import json
import os
import time
from collections.abc import Sequence
from datetime import timedelta
from functools import cache
from inspect import isfunction
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.optim import Optimizer

from castalia.errors import InvalidParameter
from castalia.optim import without_dynamo
from castalia.train.gradient_exchange import GradientExchange
from castalia.train.meta_networks import fill
from castalia.train.network_blocks import blocks
from castalia.train.shared_moments import ordinary_moments, shared_moments
from castalia.train.training import Training
from castalia.utils.process_ranks import rank_and_world
from castalia.utils.text import plural

__all__ = [
    "DataParallel",
    "FullyShardedParallel",
    "Single",
    "build_strategy",
    "from_first",
    "join_processes",
]

PATIENCE = timedelta(days=1)  # of processes for the one that fits baselines, say
SLOW = 1.5  # times as long as the usual process: worth a word


class Single:
    """One process."""

    name, rank, world = "single", 0, 1
    sharded = False  # whether each process holds a part of the weights
    idle = False  # whether this process has no row of the batch, and joins in with weight 0
    worked = 0.0  # seconds of this epoch before gradients were exchanged
    clock = staticmethod(time.perf_counter)  # what they are counted by

    def place(self, net: nn.Module, device: torch.device, dtype: torch.dtype) -> None:
        """Move the network to its device and into its format."""
        net.to(device, dtype)

    def prepare(self, net: nn.Module) -> None:
        """Make the network ready; called once before the optimizers are made."""

    def release(self, net: nn.Module) -> None:
        """Leave the network as other code expects it; called at the end, also of a failure."""

    def share(self, index: Tensor) -> Tensor:
        """Return this process's part of a batch."""
        return index

    def scale(self, part: Any, whole: Any) -> Any:
        """Return the factor of the local mean loss, from the weights of the part and the whole."""
        return part / whole

    @property
    def under_way(self) -> bool:
        """Whether gradients were sent that nobody has waited for."""
        return False

    def last_part(self, parameters: Sequence[Tensor]) -> None:
        """Say that the next backward pass completes these gradients."""

    def sync(self, parameters: Sequence[Tensor]) -> None:
        """Sum gradients over the processes."""

    def total(self, value: Tensor) -> Tensor:
        """Sum a number over the processes."""
        return value

    def state_dict(self, net: nn.Module) -> dict[str, Tensor]:
        """Return the network's weights; of divided ones, this process's part."""
        return net.state_dict()

    def whole_weights(self, net: nn.Module) -> dict[str, Tensor] | None:
        """Return the weights for a network of one process, or None when this one is whole."""
        return None

    def load_state_dict(self, net: nn.Module, state: dict[str, Any]) -> None:
        """Put weights, as ``state_dict`` returns them, in place."""
        net.load_state_dict(state)

    def optimizer_state(self, net: nn.Module, optimizer: Optimizer) -> dict[str, Any]:
        """Return the optimizer's state; of divided weights, this process's part."""
        with without_dynamo():
            return optimizer.state_dict()

    def load_optimizer_state(
        self, net: nn.Module, optimizer: Optimizer, state: dict[str, Any]
    ) -> None:
        """Put a state, as ``optimizer_state`` returns it, in place."""
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

    def slow(self) -> str:
        """Say in words which process the others wait for, and count from zero again."""
        return ""


class DataParallel(Single):
    """The network in every process, the batch divided among them."""

    name = "ddp"

    def __init__(self) -> None:
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self._exchanges: dict[tuple[int, ...], GradientExchange] = {}

    def prepare(self, net: nn.Module) -> None:
        """Start every process from the weights of the first."""
        self.broadcast([*net.parameters(), *net.buffers()])
        shared_moments(net, self)

    def release(self, net: nn.Module) -> None:
        """Let batch normalisation use the rows that it is given, as torch does."""
        ordinary_moments(net)
        while self._exchanges:
            self._exchanges.popitem()[1].close()

    def share(self, index: Tensor) -> Tensor:
        """Return the rank-th piece of a batch."""
        return index.tensor_split(self.world)[self.rank]

    def sync(self, parameters: Sequence[Tensor]) -> None:
        """Sum gradients over the processes; what the backward pass has sent is waited for."""
        self._exchange(parameters).finish()

    def last_part(self, parameters: Sequence[Tensor]) -> None:
        """Let the next backward pass send gradients as soon as they are there."""
        self._exchange(parameters).begin()

    @property
    def under_way(self) -> bool:
        """Whether gradients were sent that nobody has waited for."""
        return any(exchange.under_way for exchange in self._exchanges.values())

    def _exchange(self, parameters: Sequence[Tensor]) -> GradientExchange:
        key = tuple(map(id, parameters))
        if key not in self._exchanges:
            self._exchanges[key] = GradientExchange(parameters, _gradient_group())
        return self._exchanges[key]

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

    def slow(self) -> str:
        """Say in words which process the others wait for, and count from zero again.

        A GPU works after its step was launched: there it is unknown.
        """
        mine, self.worked = torch.tensor(self.worked), 0.0
        if dist.get_backend() != "gloo":
            return ""
        seconds = torch.stack(self.gather(mine))
        rank, usual = int(seconds.argmax()), float(seconds.sort().values[(self.world - 1) // 2])
        if seconds[rank] < max(SLOW * usual, usual + 1.0):
            return ""
        return f"process {rank} works {float(seconds[rank]) / usual:.1f} times as long as others do"


class FullyShardedParallel(DataParallel):
    """Weights, gradients and optimizer state divided among the processes (FSDP2)."""

    name, sharded = "fsdp", True
    clock = staticmethod(time.process_time)  # processes wait for each other in the middle of a step

    def __init__(self, shard: int | None = None, offload: bool = False) -> None:
        super().__init__()
        self.shard, self.offload = shard, offload
        if shard is not None and self.world % shard:
            raise InvalidParameter(
                f"Training: `shard={shard}` must divide the number of processes, {self.world}."
            )

    def place(self, net: nn.Module, device: torch.device, dtype: torch.dtype) -> None:
        """Bring the network into its format: parts of it are moved when they are divided."""
        self.device = device
        net.to(dtype)

    def prepare(self, net: nn.Module) -> None:
        """Shard the blocks that the network is a list of, each by itself, then the rest.

        No device holds more than the shards and one block of the whole network.
        """
        from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method

        scalar = next((name for name, p in net.named_parameters() if not p.ndim), None)
        if scalar is not None:
            raise InvalidParameter(
                f"Training: `strategy='fsdp'` divides weights among processes, but `{scalar}` is a "
                "single number. Use 'ddp'."
            )
        shared_moments(net, self)
        options = self._options()
        for part in [*blocks(net), net]:
            fill(part, self.device)
            fully_shard(part, **options)
            for name in _methods(type(part)):  # more than `forward` is called
                register_fsdp_forward_method(part, name)

    def _options(self) -> dict[str, Any]:
        """Return among which processes weights are divided, and where they are kept."""
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import CPUOffloadPolicy

        device, every = self.device.type, self.shard or self.world
        first = self.shard is None  # one axis: all processes divide the weights
        shape = (self.world // every, every)[first:]
        names = ("copies", "shards")[first:]
        # torch would take the machine's GPUs, also for a training on its CPUs
        found: dict[str, Any] = {"mesh": init_device_mesh(device, shape, mesh_dim_names=names)}
        if self.offload:
            found["offload_policy"] = CPUOffloadPolicy(pin_memory=device == "cuda")
        return found

    def scale(self, part: Any, whole: Any) -> Any:
        """Undo the mean over processes that FSDP takes when it reduces gradients."""
        return self.world * part / whole

    def last_part(self, parameters: Sequence[Tensor]) -> None:
        """Do nothing: FSDP sends on its own."""

    def sync(self, parameters: Sequence[Tensor]) -> None:
        """Do nothing: FSDP has reduced the gradients in the backward pass."""

    def state_dict(self, net: nn.Module) -> dict[str, Tensor]:
        """Return this process's part of the weights."""
        found: Any = _states().get_model_state_dict(net)
        return found

    def whole_weights(self, net: nn.Module) -> dict[str, Tensor] | None:
        """Gather the weights: what is left in this process is a shard."""
        options = _states().StateDictOptions(full_state_dict=True)
        found: Any = _states().get_model_state_dict(net, options=options)
        return found

    def load_state_dict(self, net: nn.Module, state: dict[str, Any]) -> None:
        """Put this process's part of the weights in place."""
        _states().set_model_state_dict(net, dict(state))  # torch writes into the dict it is given

    def optimizer_state(self, net: nn.Module, optimizer: Optimizer) -> dict[str, Any]:
        """Return this process's part of the optimizer's state."""
        return _states().get_optimizer_state_dict(net, optimizer)

    def load_optimizer_state(
        self, net: nn.Module, optimizer: Optimizer, state: dict[str, Any]
    ) -> None:
        """Put this process's part of the optimizer's state in place."""
        _states().set_optimizer_state_dict(net, optimizer, state)


def _states() -> Any:
    """Return torch's functions for states of divided networks."""
    from torch.distributed.checkpoint import state_dict

    return state_dict


def _methods(kind: type) -> list[str]:
    """Return the methods that a network offers beside those of any module."""
    known = set(dir(nn.Module))
    return [
        name
        for name in dir(kind)
        if name not in known and name[0] != "_" and isfunction(getattr(kind, name))
    ]


@cache
def _group_beside(group: Any) -> Any:
    return dist.new_group(timeout=PATIENCE)


def _gradient_group() -> Any:
    """Return a group of all processes in which gradients travel, made once."""
    return _group_beside(dist.group.WORLD)


def _leave() -> None:
    """Leave the process group at the end of the program, unless somebody else did."""
    if dist.is_initialized():
        dist.destroy_process_group()


def build_strategy(training: Training, device: torch.device) -> Single:
    """Return the strategy of a training; joins the process group under ``torchrun``."""
    launched = rank_and_world()[1] > 1
    name = training.strategy
    if name == "auto":
        name = "ddp" if launched else "single"
    if name == "single":
        return Single()
    join_processes(device, offload=training.offload)
    if name == "ddp":
        return DataParallel()
    return FullyShardedParallel(training.shard, training.offload)


def join_processes(device: torch.device, *, offload: bool = False) -> None:
    """Meet the processes that ``torchrun`` started, unless that was done before."""
    if not dist.is_initialized():
        name = "nccl" if device.type == "cuda" else "gloo"
        place, there = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
        if name == "nccl" and place >= there:
            raise InvalidParameter(
                f"Training: every process of a machine needs a GPU of its own; there are "
                f"{place + 1} processes or more, and torch sees {plural(there, 'GPU')}. Start "
                "fewer (--nproc-per-node, `workers`), or use device='cpu'."
            )
        name = "cpu:gloo,cuda:nccl" if offload and name == "nccl" else name
        dist.init_process_group(name, timeout=PATIENCE)
        atexit.register(_leave)


def from_first(value: Any) -> Any:
    """Return the first process's value, a plain one, in every process; alone, the value itself."""
    if rank_and_world()[1] == 1 or not dist.is_initialized():
        return value
    held = [json.dumps(value)]
    dist.broadcast_object_list(held, src=0)
    return json.loads(held[0])
