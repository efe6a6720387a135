"""Which boxes a drawing shows as one: the boxes of a layer, and of each step of a repetition."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby

import torch
from torch import Tensor

from castalia.autodiff.graphs.box import Box
from castalia.autodiff.graphs.box_graph import BoxGraph

__all__ = ["Node", "fold", "magnitude", "repetition"]

MOST = 3  # operations that a title names one by one
MOVES = (  # operations that compute nothing
    "_to_copy", "alias", "clone", "expand", "getitem", "permute", "reshape", "select", "slice",
    "split", "split_with_sizes", "squeeze", "t", "transpose", "unsqueeze", "view",
)  # fmt: skip


@dataclass(eq=False)
class Node:
    """What is drawn as one thing: a box, or several of them.

    Attributes
    ----------
    boxes
        The boxes, in order; leaves that only they read are among them.
    title, name
        Two lines of text.
    parents
        The nodes it reads.
    """

    boxes: list[Box]
    title: str
    name: str = ""
    parents: list[Node] = field(default_factory=list)

    @property
    def end(self) -> Box:
        """The box whose value leaves the node."""
        return self.boxes[-1]

    @property
    def is_leaf(self) -> bool:
        """Whether it is one given tensor."""
        return self.end.is_leaf

    @cached_property
    def size(self) -> float | None:
        """Root mean square of the adjoint of what leaves the node; None before ``bprop``."""
        return magnitude(self.end.adjoint)

    @cached_property
    def parameters(self) -> float | None:
        """Root mean square of the gradient by the parameters inside, or None."""
        inside = [box.adjoint for box in self.boxes if box.kind == "parameter"]
        parts = [part for part in inside if isinstance(part, Tensor)]
        if self.is_leaf or not parts:
            return None
        squares = sum((magnitude(part) or 0.0) ** 2 * part.numel() for part in parts)
        return math.sqrt(squares / sum(part.numel() for part in parts))


def magnitude(value: object) -> float | None:
    """Root mean square of a tensor, or of the first of several."""
    if isinstance(value, tuple):
        value = next((part for part in value if part is not None), None)
    if not isinstance(value, Tensor) or not value.numel():
        return None
    norm = float(torch.linalg.vector_norm(_smooth(value)))
    if not 1e-15 < norm < math.inf:  # its squares may not fit
        norm = float(torch.linalg.vector_norm(_smooth(value).to(torch.complex128)))
    return norm / math.sqrt(value.numel())


def _smooth(value: Tensor) -> Tensor:
    value = value.detach()
    return value if value.is_floating_point() or value.is_complex() else value.double()


def fold(graph: BoxGraph, folded: bool) -> list[Node]:
    """Return the nodes of a drawing, parents first.

    Parameters
    ----------
    graph
        What is drawn.
    folded
        Whether the boxes of a layer become one node, and so do those of a step that repeats.
    """
    operations = [box for box in graph.order if not box.is_leaf]
    groups = _groups(operations) if folded else [[box] for box in operations]
    repeated = _numbers(groups)
    containers = {m for box in operations for m in _above(box.module)}
    owner: dict[Box, Node] = {}
    nodes = []
    for group, number in zip(groups, repeated, strict=True):
        loose = group[0].module in containers
        node = Node(list(group), *(_words(group, number, loose) if folded else _plain(group[0])))
        nodes.append(node)
        owner.update(dict.fromkeys(group, node))
    shown = [box for box in graph.order if box.is_leaf and (box.children or box in graph.ends)]
    leaves = [_leaf(box, owner, folded) for box in shown]
    nodes = [leaf for leaf in leaves if leaf is not None] + nodes
    owner.update({node.end: node for node in nodes if node.is_leaf})
    for node in nodes:
        read = (owner.get(p) for box in node.boxes for p in box.parents)
        node.parents = list(dict.fromkeys(n for n in read if n is not None and n is not node))
    return _sorted(nodes)


def _groups(operations: Sequence[Box]) -> list[list[Box]]:
    """Cut the operations at the borders of modules, and those of one module where they repeat."""
    runs = [list(run) for _, run in groupby(operations, key=lambda box: box.module)]
    groups = []
    for run in runs:
        start, period, count = repetition([box.operation for box in run])
        if not run[0].module and not count:
            groups += [[box] for box in run]
            continue
        if not count:
            groups.append(run)
            continue
        groups += [[box] for box in run[:start]] if not run[0].module else _some(run[:start])
        groups += [run[start + i * period : start + (i + 1) * period] for i in range(count)]
        rest = run[start + count * period :]
        groups += [[box] for box in rest] if not run[0].module else _some(rest)
    return groups


def _some(run: list[Box]) -> list[list[Box]]:
    return [run] if run else []


def repetition(words: Sequence[str], shortest: int = 3) -> tuple[int, int, int]:
    """Return start, period and count of the repetition that covers most of a sequence.

    Examples
    --------
    >>> repetition(["cat", "mm", "add", "tanh", "mm", "add", "tanh", "sum"])
    (1, 3, 2)
    """
    best, n = (0, 0, 0), len(words)
    for period in range(shortest, n // 2 + 1):
        start = 0
        while start + 2 * period <= n:
            end = start + period
            while end < n and words[end] == words[end - period]:
                end += 1
            count = (end - start) // period
            if count >= 2 and count * period > best[1] * best[2]:
                best = (start, period, count)
            start = max(end - period + 1, start + 1)
    return best


def _numbers(groups: list[list[Box]]) -> list[str]:
    """Say ``1 of 5`` for groups of one module that repeat, nothing for others."""
    keys = [(g[0].module, tuple(b.operation for b in g)) for g in groups]
    totals = {key: keys.count(key) for key in keys if len(key[1]) > 1}
    seen: dict[object, int] = {}
    said = []
    for key in keys:
        seen[key] = seen.get(key, 0) + 1
        said.append(f"{seen[key]} of {totals[key]}" if totals.get(key, 1) > 1 else "")
    return said


def _above(module: str) -> list[str]:
    """Return the modules around one: ``["a", "a.b"]`` for ``"a.b.c"``."""
    parts = module.split(".")
    return [".".join(parts[:i]) for i in range(1, len(parts))]


def _words(group: list[Box], number: str, loose: bool) -> tuple[str, str]:
    """Name a layer by its class, and what a module computes between its layers by itself."""
    first = group[0]
    if len(group) == 1 and not first.module:
        return _plain(first)
    title = _loose(group) if loose else first.module_class or "step"
    return (f"{title} {number}".strip() if number else title), first.module


def _loose(group: list[Box]) -> str:
    """Name operations that stand between the layers of a module."""
    words = [box.operation.strip("_") for box in group if box.operation not in MOVES]
    if len(words) > MOST:
        return f"{group[0].module_class}: {len(words)} operations"
    return " · ".join(words) or group[-1].operation


def _plain(box: Box) -> tuple[str, str]:
    return box.operation, box.module or box.name


def _leaf(box: Box, owner: dict[Box, Node], folded: bool) -> Node | None:
    """Give a leaf a node of its own, or put it inside the only layer that reads it."""
    readers = [owner[child] for child in box.children if child in owner]
    modules = {node.end.module for node in readers}
    if folded and box.kind != "input" and len(modules) == 1 and modules != {""}:
        readers[0].boxes.insert(0, box)
        return None
    return Node([box], box.name, box.kind)


def _sorted(nodes: list[Node]) -> list[Node]:
    """Parents first; folding keeps the order of the last boxes."""
    done: dict[int, Node] = {}

    def visit(node: Node) -> None:
        if id(node) not in done:
            for parent in node.parents:
                visit(parent)
            done[id(node)] = node

    for node in nodes:
        visit(node)
    return list(done.values())
