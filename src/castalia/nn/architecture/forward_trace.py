"""Watching one forward pass: which module runs, what it costs, and what its output depends on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from castalia.nn.architecture.input_reach import Reach
from castalia.nn.architecture.operation_call import Reaches
from castalia.nn.architecture.reach_rules import passed_on

__all__ = ["Visit", "Watch"]


@dataclass
class Visit:
    """One call of a module; FLOPs inside modules that it calls are not its own."""

    name: str
    module: nn.Module
    flops: int = 0
    shape: tuple[int, ...] = ()
    reaches: Reaches | None = None


class Watch(TorchDispatchMode):
    """Counts FLOPs and follows reaches through every operation under it.

    Attributes
    ----------
    visits
        Calls of modules, in the order in which they ended.
    """

    def __init__(self, x: Tensor, axes: Sequence[int], margin: int) -> None:
        super().__init__()
        self.visits: list[Visit] = []
        self.open: list[Visit] = []
        self.reaches: dict[int, Reaches] = {}
        self.unknown: set[int] = set()
        self.alive: list[Tensor] = [x]  # or a new tensor could take the identity of an old one
        if axes:
            self.reaches[id(x)] = tuple(Reach.start(x.shape[axis], axis, margin) for axis in axes)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Run the operation, and note what it did."""
        out = func(*args, **(kwargs or {}))
        counted = flop_registry.get(func._overloadpacket)
        if counted is not None and self.open:
            self.open[-1].flops += int(counted(*args, **(kwargs or {}), out_val=out))
        self._follow(func, args, kwargs or {}, _tensors([out]))
        return out

    def _follow(
        self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], out: list[Tensor]
    ) -> None:
        taken = _tensors([*args, *kwargs.values()])
        self.alive += out
        if any(id(tensor) in self.unknown for tensor in taken):
            found = None
        elif any(id(tensor) in self.reaches for tensor in taken):
            found = passed_on(func, args, kwargs, out, self.reaches)
        else:
            return
        if found is None:
            self.unknown.update(map(id, out))
            return
        for tensor, reaches in zip(out, found, strict=True):
            self.reaches[id(tensor)] = reaches

    @contextmanager
    def hooks(self, net: nn.Module) -> Iterator[None]:
        """Listen to every module of a network."""
        handles = []
        for name, module in net.named_modules():
            handles.append(module.register_forward_pre_hook(self._enter(name)))
            handles.append(module.register_forward_hook(self._leave))
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _enter(self, name: str) -> Any:
        return lambda module, args: self.open.append(Visit(name, module))

    def _leave(self, module: nn.Module, args: Any, out: Any) -> None:
        visit = self.open.pop()
        tensors = _tensors([out])
        if tensors:
            visit.shape = tuple(tensors[0].shape)
            visit.reaches = self.reaches.get(id(tensors[0]))
        self.visits.append(visit)


def _tensors(values: Any) -> list[Tensor]:
    """Return the tensors among values, one list or tuple deep."""
    flat = [v for value in values for v in (value if isinstance(value, list | tuple) else [value])]
    nested = [v for value in flat for v in (value if isinstance(value, list | tuple) else [value])]
    return [value for value in nested if isinstance(value, torch.Tensor)]
