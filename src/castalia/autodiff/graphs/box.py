"""Boxes: the operations of a computation graph, each with its forward and its backward rule.

A box is a leaf (input, parameter, buffer, constant) or one operation of torch. ``fprop`` maps the
values of the parents to the value; ``bprop`` maps the adjoint of the value, dL/d value, to one
contribution for each parent, the vector-Jacobian product of that single operation.
"""

from __future__ import annotations

import linecache
import operator
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from castalia.autodiff.graphs.box_values import detached, differentiable, leaf_of, products
from castalia.errors import InvalidData

__all__ = ["Box", "Source", "Value", "any_layout", "boxes_in", "fill"]

Value = Tensor | tuple[Tensor, ...]
_VIEWS = (torch.ops.aten.view.default, torch.ops.aten._unsafe_view.default)


def any_layout(op: Any) -> Any:
    """Return ``reshape`` for a view, which would hold for one layout of the memory only."""
    return torch.ops.aten.reshape.default if op in _VIEWS else op


@dataclass(frozen=True)
class Source:
    """The line of the user's file that asked for an operation."""

    file: str
    line: int

    @property
    def text(self) -> str:
        """The line itself, or nothing when the file cannot be read."""
        return linecache.getline(self.file, self.line).strip()

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(eq=False, repr=False)
class Box:
    """One node of a graph.

    Parameters
    ----------
    name
        Unique in its graph; parameters and buffers are named as in the module.
    kind
        ``"input"``, ``"parameter"``, ``"buffer"``, ``"constant"`` or ``"operation"``.
    op
        The function of torch that an operation calls.
    args, kwargs
        Its arguments; boxes stand where values will be.
    shape, dtype, device
        Of the value. A box with several outputs has tuples of them.
    module, module_class
        The ``nn.Module`` it came from, ``"layers.0"`` and ``"Linear"``; empty outside of modules.
    source
        The line that asked for it.
    detached
        Whether the gradient stops here: ``detach()``, or an operation under ``no_grad``.
    state
        Device and state of the random generator that the operation draws from, if it draws.

    Attributes
    ----------
    parents
        The boxes it reads, each once, in the order of the arguments.
    children
        The boxes that read it; set by the graph.
    value, adjoint
        What the last pass left, or None. A box with several outputs has tuples.
    """

    name: str
    kind: str = "operation"
    op: Callable[..., Any] | None = None
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    shape: tuple[Any, ...] = ()
    dtype: Any = None
    device: Any = None
    module: str = ""
    module_class: str = ""
    source: Source | None = None
    detached: bool = False
    state: tuple[torch.device, Tensor] | None = None
    children: list[Box] = field(default_factory=list)
    leaf: Any = None  # the value, ready to be differentiated by
    output: Any = None  # what autograd pulls through; None where nothing flows back
    adjoint: Value | None = None

    def __repr__(self) -> str:
        return f"<{self.name}: {self.operation} {self.shape}>"

    @cached_property
    def parents(self) -> tuple[Box, ...]:
        """The boxes it reads."""
        return tuple(dict.fromkeys(boxes_in((self.args, self.kwargs))))

    @property
    def value(self) -> Value | None:
        """The value after the last forward pass, or None."""
        return None if self.leaf is None else detached(self.leaf)

    @property
    def operation(self) -> str:
        """Short name of the operation, ``"addmm"``; of a leaf its kind."""
        if self.op is None:
            return self.kind
        packet = getattr(self.op, "overloadpacket", self.op)
        return str(packet.__name__)

    @property
    def is_leaf(self) -> bool:
        """Whether the value is given and not computed."""
        return self.op is None

    @property
    def is_variable(self) -> bool:
        """Whether one may differentiate by the value; not so with buffers and constants."""
        return self.kind not in ("buffer", "constant")

    @property
    def is_random(self) -> bool:
        """Whether the operation draws random numbers."""
        return torch.Tag.nondeterministic_seeded in getattr(self.op, "tags", ())

    @property
    def has_several_outputs(self) -> bool:
        """Whether the value is a tuple, read by ``getitem`` boxes."""
        return isinstance(self.dtype, tuple)

    def fprop(self, *parents: Value) -> Value:
        """Return the value, given those of the parents."""
        return detached(self.run(dict(zip(self.parents, parents, strict=True)))[0])

    def bprop(self, adjoint: Any, *parents: Value) -> tuple[Any, ...]:
        """Return a contribution for each parent, given the adjoint and the parents' values.

        None stands for a parent that the operation is not differentiable by.
        """
        pairs = zip(self.parents, parents, strict=True)
        leaves = {box: leaf_of(v) if box.is_variable else detached(v) for box, v in pairs}
        return self.pull(self.run(leaves)[1], leaves, adjoint)

    def run(self, values: Mapping[Box, Value]) -> tuple[Value, Any]:
        """Compute the value as a fresh leaf, and the output that autograd can pull through."""
        if self.op is operator.getitem:
            return values[self.args[0]][self.args[1]], None
        args, kwargs = fill(self.args, values), fill(self.kwargs, values)
        with torch.set_grad_enabled(not self.detached), self._replay():
            try:
                output = self.op(*args, **kwargs)  # type: ignore[misc]
            except RuntimeError as error:
                if "shape" not in str(error):
                    raise
                raise InvalidData(
                    f"Graph.fprop: box `{self.name}` ({self.operation}) must get the shapes it was "
                    f"traced with; got {str(error).splitlines()[0]!r}. Where a size depends on the "
                    "numbers, as in `x[x > 0]`, trace again with these inputs."
                ) from error
        if isinstance(output, Tensor):
            return (leaf_of(output), output) if output.requires_grad else (output, None)
        leaves = tuple(leaf_of(o) if differentiable(o) else o for o in output)
        return leaves, tuple(output) if any(map(differentiable, output)) else None

    def describe(self) -> None:
        """Take shape, dtype and device from the value, the first time there is one."""
        several = not isinstance(self.leaf, Tensor)
        if self.dtype is None:
            facts = [_facts(part) for part in (self.leaf if several else (self.leaf,))]
            self.shape, self.dtype, self.device = zip(*facts, strict=True) if several else facts[0]
        elif not several and self.leaf.shape != self.shape:  # sizes are numbers in the graph
            line = f" at {self.source}: `{self.source.text}`" if self.source else ""
            raise InvalidData(
                f"Graph.fprop: box `{self.name}` ({self.operation}) must have the shape it was "
                f"traced with, {self.shape}; got {tuple(self.leaf.shape)}, for its size depends on "
                f"the numbers{line}. Trace again with these inputs, or use `torch.where`."
            )

    def pull(self, output: Any, values: Mapping[Box, Any], adjoint: Any) -> tuple[Any, ...]:
        """Vector-Jacobian product of the operation: what each parent receives."""
        if self.op is operator.getitem:  # the adjoint of one slot of the tuple
            (parent,), slot = self.parents, self.args[1]
            return (tuple(adjoint if i == slot else None for i in range(len(parent.dtype))),)
        asked = [p for p in self.parents if differentiable(values[p])]
        if output is None or not asked:
            return (None,) * len(self.parents)
        try:
            found = products(output, [values[p] for p in asked], adjoint)
        except (RuntimeError, NotImplementedError) as error:
            raise self.without_derivative(error) from error
        by = dict(zip(asked, found, strict=True))
        return tuple(by.get(p) for p in self.parents)

    def without_derivative(self, error: Exception) -> Exception:
        """Say which box torch cannot differentiate; any other error stays as it is."""
        if "not implemented" not in str(error):
            return error
        return InvalidData(
            f"Graph: box `{self.name}` must have a derivative; got `{self.operation}`, for which "
            f"torch has none ({error})."
        )

    @contextmanager
    def _replay(self) -> Iterator[None]:
        """Draw the numbers that were drawn when the graph was traced."""
        if self.state is None:
            yield
            return
        device, state = self.state
        cuda = device.type == "cuda"
        with torch.random.fork_rng(devices=[device] if cuda else []):
            if cuda:
                torch.cuda.set_rng_state(state, device)
            else:
                torch.set_rng_state(state)
            yield


def boxes_in(arg: Any) -> Iterator[Box]:
    """Yield the boxes among arguments, which may be nested."""
    if isinstance(arg, Box):
        yield arg
    elif isinstance(arg, tuple | list):
        for part in arg:
            yield from boxes_in(part)
    elif isinstance(arg, dict):
        yield from boxes_in(tuple(arg.values()))


def fill(arg: Any, values: Any) -> Any:
    """Put values in the place of boxes; ``values`` maps boxes to them."""
    if isinstance(arg, Box):
        return values[arg]
    if isinstance(arg, tuple | list):
        return type(arg)(fill(part, values) for part in arg)
    if isinstance(arg, dict):
        return {name: fill(part, values) for name, part in arg.items()}
    return arg


def _facts(value: Tensor | None) -> tuple[Any, Any, Any]:
    """Shape, dtype and device; an output that was not asked for is None."""
    return ((), None, None) if value is None else (tuple(value.shape), value.dtype, value.device)
