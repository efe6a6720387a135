"""Graphs put together box by box, where equal operations are one box."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Generic

import torch
import torch.utils._pytree as pytree
from torch import Tensor

from castalia.autodiff.graphs.box import Box, boxes_in, fill
from castalia.autodiff.graphs.box_graph import AnyGraph

__all__ = ["Builder"]


class Builder(Generic[AnyGraph]):
    """A graph in the making, over the leaves of another one.

    Parameters
    ----------
    graph
        Whose leaves, arguments and name are taken over.

    Attributes
    ----------
    new
        From boxes of the old graph to boxes of the new one; filled by the caller for operations.
    """

    def __init__(self, graph: AnyGraph) -> None:
        self.graph = graph
        self.boxes: list[Box] = []
        self.names: set[str] = set()
        self.tensors: dict[Box, Tensor] = {}
        self.new: dict[Box, Box] = {}
        self._known: dict[Any, Box] = {}
        for box in graph.order:
            if box.is_leaf:
                self.new[box] = self._keep(box)
                self.tensors[self.new[box]] = graph.tensors[box]

    def copy(self, box: Box) -> Box:
        """Take an operation over, reading the new boxes of its parents."""
        args, kwargs = fill(box.args, self.new), fill(box.kwargs, self.new)
        return self.add(box.op, args, kwargs, like=box, same=True)  # type: ignore[arg-type]

    def add(
        self,
        op: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any] | None = None,
        *,
        like: Box,
        same: bool = False,
    ) -> Box:
        """Return the box of an operation, the one that is there already if there is one.

        Parameters
        ----------
        op, args, kwargs
            The operation.
        like
            An old box that lends its module and its line.
        same
            Whether the box computes just what ``like`` does, and so keeps its name and shape.
        """
        kwargs = kwargs or {}
        state = like.state if same else None
        key = None if state is not None else (op, _frozen((args, kwargs)), same and like.detached)
        if key is not None and key in self._known:
            return self._known[key]
        box = replace(
            like,
            name=self._free(like.name if same else _stem(op)),
            kind="operation",
            op=op,
            args=args,
            kwargs=kwargs,
            detached=same and like.detached,
            state=state,
            children=[],
            leaf=None,
            output=None,
            adjoint=None,
        )
        if not same:
            box.shape, box.dtype, box.device = (), None, None
        if key is not None:
            self._known[key] = box
        return self._enter(box)

    def constant(self, tensor: Tensor, name: str = "constant") -> Box:
        """Add a leaf that holds a tensor."""
        facts = {"shape": tuple(tensor.shape), "dtype": tensor.dtype, "device": tensor.device}
        box = Box(self._free(name), "constant", **facts)  # type: ignore[arg-type]
        self.tensors[box] = tensor
        return self._enter(box)

    def full(self, shape: Iterable[int], value: float, like: Box) -> Box:
        """Add a tensor of one number, in the type and on the device of another box."""
        kind = {"dtype": like.dtype, "device": like.device}
        return self.add(torch.ops.aten.full.default, ([*shape], value), kind, like=like)

    def rename(self, box: Box, name: str) -> None:
        """Give a box a better name."""
        box.name = self._free(name)
        self.names.add(box.name)

    def build(self, outputs: Any) -> AnyGraph:
        """Finish: leave out what the outputs do not depend on, and run once."""
        needed = set(boxes_in(outputs))
        todo = list(needed)
        while todo:
            todo += [parent for parent in todo.pop().parents if parent not in needed]
            needed.update(todo)
        needed |= {box for box in self.boxes if box.kind in ("input", "parameter", "buffer")}
        old = self.graph
        arguments = pytree.tree_map_only(Box, lambda box: self.new[box], old.arguments)
        tensors = {box: tensor for box, tensor in self.tensors.items() if box in needed}
        kept = [box for box in self.boxes if box in needed]
        same = {"arguments": arguments, "keywords": old.keywords, "name": old.name}
        graph = type(old)(kept, outputs, tensors, **same)
        graph.run()
        return graph

    def _keep(self, box: Box) -> Box:
        return self._enter(replace(box, children=[], leaf=None, output=None, adjoint=None))

    def _enter(self, box: Box) -> Box:
        self.boxes.append(box)
        self.names.add(box.name)
        return box

    def _free(self, name: str) -> str:
        if name not in self.names:
            return name
        number = 1
        while f"{name}_{number}" in self.names:
            number += 1
        return f"{name}_{number}"


def _stem(op: Any) -> str:
    """A name for a box, from its operation."""
    return str(getattr(op, "overloadpacket", op).__name__).strip("_")


def _frozen(arg: Any) -> Any:
    """Arguments as a key: boxes by identity, numbers by type and value (1 is not 1.0)."""
    if isinstance(arg, tuple | list):
        return tuple(_frozen(part) for part in arg)
    if isinstance(arg, dict):
        return tuple((name, _frozen(part)) for name, part in sorted(arg.items()))
    return arg if isinstance(arg, Box) else (type(arg), str(arg))
