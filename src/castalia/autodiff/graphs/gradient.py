"""Symbol-to-symbol differentiation: a graph that computes the gradient of another one.

The new graph holds the boxes of the old one and, in reverse order, the boxes of every
vector-Jacobian product. Each product is what torch's autograd records for that single operation,
so the new graph is made of ordinary operations and can be differentiated again.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Generic

import torch
import torch.utils._pytree as pytree
from torch import Tensor, fx
from torch._ops import OpOverload

from castalia.autodiff.graphs.box import Box, any_layout, fill
from castalia.autodiff.graphs.box_graph import AnyGraph, BoxGraph
from castalia.autodiff.graphs.box_values import leaf_of
from castalia.autodiff.graphs.builder import Builder
from castalia.autodiff.graphs.fx_capture import record
from castalia.autodiff.graphs.graph_inputs import scalar_end, seeds_of
from castalia.errors import InvalidParameter
from castalia.utils.text import plural

__all__ = ["gradient"]

Wrt = int | str | Box
_COPIES = ("aten.detach.default", "aten.alias.default", "aten.lift_fresh_copy.default")


def gradient(graph: AnyGraph, wrt: Wrt | Sequence[Wrt] = 0, seed: Any = None) -> AnyGraph:
    """Return the graph of the gradient of a scalar output, or of a product with ``seed``.

    Parameters
    ----------
    graph
        What to differentiate.
    wrt
        By what: the number of an input, the name of any box, or a list of them.
    seed
        Adjoint of the output, as in ``Graph.bprop``; a scalar output needs none.
    """
    several = isinstance(wrt, list | tuple)
    asked: Any = wrt if several else [wrt]
    targets = [_target(graph, each) for each in asked]
    adjoints = _Adjoints(graph, targets)
    adjoints.start(seed)
    for box in reversed(graph.order):
        adjoints.push(box)
    found = tuple(adjoints.of(box) for box in targets)
    return adjoints.builder.build(found if several else found[0])


class _Adjoints(Generic[AnyGraph]):
    """The boxes of the adjoints, collected going backwards."""

    def __init__(self, graph: AnyGraph, targets: Sequence[Box]) -> None:
        self.graph = graph
        self.builder = Builder(graph)
        for box in graph.order:
            if not box.is_leaf:
                self.builder.new[box] = self.builder.copy(box)
        self.named = set(self.builder.new.values())
        self.parts: dict[Box, Any] = {}  # of a box with several outputs: a dict by slot
        self.open = set(targets)  # boxes that depend on a target
        for box in graph.order:
            if not self.open.isdisjoint(box.parents):
                self.open.add(box)

    def start(self, seed: Any) -> None:
        if seed is None:
            end = scalar_end("Graph.gradient", self.graph.ends)
            self._give(end, self.builder.full(end.shape, 1.0, end))
            return
        for end, part in seeds_of("Graph.gradient", self.graph.ends, seed):
            self._give(end, self.builder.constant(part, "seed"))

    def push(self, box: Box) -> None:
        """Give each parent its contribution."""
        adjoint = self.parts.get(box)
        if isinstance(adjoint, Box) and adjoint not in self.named:
            self.named.add(adjoint)
            self.builder.rename(adjoint, f"d_{box.name}")
        asked = [p for p in box.parents if p in self.open and _flows_back(p)]
        if adjoint is None or box.is_leaf or not asked:
            return
        if box.op is operator.getitem:
            self._give(box.args[0], adjoint, slot=box.args[1])
        elif box.output is not None:
            for parent, part in self._products(box, asked, adjoint):
                self._give(parent, part)

    def of(self, box: Box) -> Box:
        found = self.parts.get(box)
        if found is None:
            raise InvalidParameter(
                f"Graph.gradient: the output must depend on `{box.name}`; got one that does not, "
                "or only through integers or what is detached."
            )
        return found

    def _give(self, box: Box, part: Box, slot: int | None = None) -> None:
        have = self.parts.setdefault(box, {}) if slot is not None else self.parts
        key: Any = box if slot is None else slot
        if key in have:
            part = self.builder.add(torch.ops.aten.add.Tensor, (have[key], part), like=box)
        have[key] = part

    def _products(self, box: Box, asked: list[Box], adjoint: Any) -> list[tuple[Box, Box]]:
        """Insert the vector-Jacobian product of one operation."""
        slots = sorted(adjoint) if isinstance(adjoint, dict) else []
        given = [adjoint[s] for s in slots] if slots else [adjoint]
        rule = _Rule.of(box, asked, slots)
        boxes = rule.insert(self.builder, box, given)
        return [(parent, part) for parent, part in zip(asked, boxes, strict=True) if part]


class _Rule:
    """The vector-Jacobian product of one operation, as torch records it."""

    def __init__(self, box: Box, asked: list[Box], slots: list[int]) -> None:
        self.missing: list[bool] = []
        self.count = len(box.parents)
        values: list[Any] = [parent.value for parent in box.parents]
        output: Any = box.value
        wanted = [box.parents.index(parent) for parent in asked]

        def product(*tensors: Tensor) -> list[Tensor]:
            flat = list(tensors[: self.count])
            for i in wanted:
                flat[i] = leaf_of(flat[i])
            output = box.op(*fill(box.args, by(flat)), **fill(box.kwargs, by(flat)))  # type: ignore
            parts = [output[s] for s in slots] if slots else output
            found = torch.autograd.grad(
                parts, [flat[i] for i in wanted], tensors[self.count :] if slots else tensors[-1],
                allow_unused=True,
            )  # fmt: skip
            self.missing = [part is None for part in found]
            return [part for part in found if part is not None]

        def by(flat: list[Tensor]) -> dict[Box, Tensor]:
            return dict(zip(box.parents, flat, strict=True))

        adjoints = [torch.ones_like(out) for out in ([output[s] for s in slots] or [output])]
        try:
            with torch.enable_grad():
                self.module = record(product, [*values, *adjoints])
        except (RuntimeError, NotImplementedError) as error:
            raise box.without_derivative(error) from error

    @classmethod
    def of(cls, box: Box, asked: list[Box], slots: list[int]) -> _Rule:
        """Record a rule, once for boxes that are alike; recording takes milliseconds."""
        if not isinstance(box.op, OpOverload):  # a custom function may close over anything
            return cls(box, asked, slots)
        facts = {p: (i, _layout(p), p in asked) for i, p in enumerate(box.parents)}
        key = str((box.op, fill(box.args, facts), fill(box.kwargs, facts), _layout(box), slots))
        if key not in _KNOWN:
            if len(_KNOWN) >= 1000:
                _KNOWN.clear()
            _KNOWN[key] = cls(box, asked, slots)
        return _KNOWN[key]

    def insert(self, builder: Builder[Any], box: Box, adjoints: list[Box]) -> list[Box | None]:
        """Add the boxes of the rule; what the forward pass has computed is used again."""
        here = builder.new[box]
        given = iter([*here.parents, *adjoints])
        made: dict[fx.Node, Any] = {}
        for node in self.module.graph.nodes:
            if node.op == "placeholder":
                made[node] = next(given)
            elif node.op == "get_attr":
                tensor = getattr(self.module, node.target)
                made[node] = builder.constant(tensor)
            elif str(node.target) in _COPIES:
                made[node] = made[node.args[0]]
            elif node.op == "call_function":
                args, kwargs = _filled(node, made)
                op = any_layout(node.target)
                again = op is box.op and args == here.args and kwargs == here.kwargs
                made[node] = here if again else builder.add(op, args, kwargs, like=box)
            else:
                parts = iter([made[n] for n in node.args[0]])
        return [None if missing else next(parts) for missing in self.missing]


_KNOWN: dict[str, _Rule] = {}


def _layout(box: Box) -> list[tuple[Any, ...]]:
    """Everything about a value that a rule may depend on, but for the numbers."""
    parts = box.leaf if box.has_several_outputs else (box.leaf,)
    return [
        (p.shape, p.stride(), p.dtype, p.device) if isinstance(p, Tensor) else () for p in parts
    ]


def _filled(node: fx.Node, made: dict[fx.Node, Any]) -> tuple[Any, Any]:
    """Arguments of a node with boxes in the place of nodes, as Python's own lists and dicts."""
    return pytree.tree_map(  # type: ignore[no-any-return]
        lambda a: made[a] if isinstance(a, fx.Node) else a, (node.args, dict(node.kwargs))
    )


def _target(graph: BoxGraph, wrt: Wrt) -> Box:
    if isinstance(wrt, int) and not isinstance(wrt, bool):
        if not -len(graph.inputs) <= wrt < len(graph.inputs):
            raise InvalidParameter(
                f"Graph.gradient: `wrt` must number one of {plural(len(graph.inputs), 'input')}; "
                f"got {wrt}."
            )
        box = graph.inputs[wrt]
    else:
        box = graph[wrt]  # type: ignore[index]
    if box.dtype is None or not (box.dtype.is_floating_point or box.dtype.is_complex):
        raise InvalidParameter(
            f"Graph.gradient: `{box.name}` must be of floating-point numbers; got {box.dtype}."
        )
    return box


def _flows_back(box: Box) -> bool:
    """Whether autograd differentiates by the value; not by integers, nor by saved statistics."""
    parts = box.leaf if box.has_several_outputs else (box.leaf,)
    return any(isinstance(part, Tensor) and part.requires_grad for part in parts)
