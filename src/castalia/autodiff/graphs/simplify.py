"""Simplification of graphs by a few exact rules of algebra.

The graph is built again box by box, so that equal operations meet; each operation may first be
answered by a rule with a box that is there already. Rules leave the value as it is, up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from castalia.autodiff.graphs.box import Box, fill
from castalia.autodiff.graphs.box_graph import AnyGraph
from castalia.autodiff.graphs.builder import Builder

__all__ = ["simplify"]

aten = torch.ops.aten
_VIEWS = ("reshape", "expand", "clone", "_to_copy")
_NUMBERS = ("full", "ones", "zeros", "full_like", "ones_like", "zeros_like")


def simplify(graph: AnyGraph) -> AnyGraph:
    """Return an equal graph with fewer boxes.

    Parameters
    ----------
    graph
        What to simplify; it is left as it is.
    """
    while True:
        shorter = _pass(graph)
        if len(shorter) == len(graph):
            return shorter
        graph = shorter


def _pass(graph: AnyGraph) -> AnyGraph:
    builder = Builder(graph)
    work = _Work(builder)
    for box in graph.order:
        if not box.is_leaf:
            builder.new[box] = work.answer(box)
    return builder.build(fill(graph.outputs, builder.new))


@dataclass
class _Work:
    """The graph being written, and which of its boxes hold one number throughout."""

    builder: Builder[Any]
    uniform: dict[Box, float] = field(default_factory=dict)

    def answer(self, box: Box) -> Box:
        """Return a box with the value of ``box``, by a rule or as it is."""
        args = fill(box.args, self.builder.new)
        rule = None if box.detached else _RULES.get(box.operation)
        found = rule(self, box, args) if rule else None
        if found is None:
            found = self.builder.copy(box)
        number = None if box.detached else self._number(box, args)
        if number is not None:
            found = self.builder.full(box.shape, number, box)
            self.uniform[found] = number
        if box.name.startswith("d_") and not (found.is_leaf or found.name.startswith("d_")):
            self.builder.rename(found, box.name)  # the name of an adjoint says more
        return found

    def _number(self, box: Box, args: tuple[Any, ...]) -> float | None:
        """The number that fills the value, where that is known without running."""
        if box.dtype is None or box.has_several_outputs or not box.dtype.is_floating_point:
            return None
        if box.operation in _NUMBERS:
            given = {"o": 1.0, "z": 0.0}.get(box.operation[0])
            return given if given is not None else _plain_number(args[1])
        if box.operation in _ARITHMETIC and not box.kwargs:
            numbers = [self.number(arg) for arg in args]
            if len(numbers) in (1, 2) and None not in numbers:
                return _ARITHMETIC[box.operation](*numbers)
        if box.operation in (
            "expand",
            "reshape",
            "clone",
            "t",
            "transpose",
            "unsqueeze",
            "squeeze",
        ):
            return self.number(args[0])
        return None

    def number(self, arg: Any) -> float | None:
        """The number an argument is, or is full of."""
        return self.uniform.get(arg) if isinstance(arg, Box) else _plain_number(arg)

    def scaled(self, box: Box) -> tuple[Box, float] | None:
        """Read a box as ``x * number``."""
        if box.operation == "mul" and isinstance(box.args[0], Box):
            factor = _plain_number(box.args[1])
            return None if factor is None else (box.args[0], factor)
        return None


def _plain_number(arg: Any) -> float | None:
    return float(arg) if isinstance(arg, int | float) and not isinstance(arg, bool) else None


_ARITHMETIC: dict[str, Callable[..., float]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "neg": lambda a: -a,
}


def _fits(found: Any, box: Box) -> bool:
    """Whether a box may stand for another: same shape and type."""
    return isinstance(found, Box) and (found.shape, found.dtype) == (box.shape, box.dtype)


def _mul(work: _Work, box: Box, args: tuple[Any, ...]) -> Box | None:
    """X 1 = x, and (x a) b = x (a b)."""
    for x, other in (args, args[::-1]):
        factor = work.number(other)
        if factor is None or not _fits(x, box):
            continue
        if factor == 1.0:
            return x
        base, inner = work.scaled(x) or (x, 1.0)
        if _fits(base, box) and (inner != 1.0 or isinstance(other, Box)):
            return _like(work, box, aten.mul.Tensor, (base, factor * inner))
    return None


def _add(work: _Work, box: Box, args: tuple[Any, ...]) -> Box | None:
    """X + 0 = x."""
    if box.kwargs or len(args) != 2:
        return None
    for x, other in (args, args[::-1]):
        if work.number(other) == 0.0 and _fits(x, box):
            return x
    return None


def _right_identity(neutral: float) -> Callable[..., Box | None]:
    """Make the rule x - 0 = x, x / 1 = x or x ** 1 = x."""

    def rule(work: _Work, box: Box, args: tuple[Any, ...]) -> Box | None:
        same = not box.kwargs and len(args) == 2 and work.number(args[1]) == neutral
        return args[0] if same and _fits(args[0], box) else None

    return rule


def _twice(work: _Work, box: Box, args: tuple[Any, ...]) -> Box | None:
    """-(-x) = x, and the same for transposes."""
    inner = args[0]
    again = isinstance(inner, Box) and inner.op is box.op and set(inner.args[1:]) == set(args[1:])
    return inner.args[0] if again and _fits(inner.args[0], box) else None


def _same(work: _Work, box: Box, args: tuple[Any, ...]) -> Box | None:
    """A view, copy or expansion to the shape that is there already is nothing."""
    if "memory_format" in box.kwargs or getattr(args[0], "device", None) != box.device:
        return None
    if _fits(args[0], box):
        return args[0]
    inner = args[0]
    if box.operation == "reshape" and inner.operation == "reshape":
        return _like(work, box, box.op, (inner.args[0], *args[1:]))  # type: ignore[arg-type]
    return None


def _sum(work: _Work, box: Box, args: tuple[Any, ...]) -> Box | None:
    """A sum over nothing but dimensions of size one that are kept."""
    return args[0] if box.args[1:] and _fits(args[0], box) else None


def _like(work: _Work, box: Box, op: Callable[..., Any], args: tuple[Any, ...]) -> Box:
    """Add an operation whose value is that of ``box``."""
    made = work.builder.add(op, args, like=box)
    made.shape, made.dtype, made.device = box.shape, box.dtype, box.device
    return made


_RULES: dict[str, Callable[[_Work, Box, tuple[Any, ...]], Box | None]] = {
    "mul": _mul,
    "add": _add,
    "sub": _right_identity(0.0),
    "div": _right_identity(1.0),
    "pow": _right_identity(1.0),
    "neg": _twice,
    "t": _twice,
    "transpose": _twice,
    "sum": _sum,
    **dict.fromkeys(_VIEWS, _same),
}
