"""What a graph costs: operations, bytes, memory, and how they grow with the sizes.

A matrix product of (N, D) and (D, M) takes N D M multiplications and as many additions, 2 N D M
FLOPs; an elementwise operation one FLOP for each number. The counts of products and convolutions
are those of ``torch.utils.flop_counter``.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from math import prod

from torch import Tensor
from torch.utils.flop_counter import flop_registry

from castalia.autodiff.graphs.box import Box, fill
from castalia.autodiff.graphs.box_graph import BoxGraph

__all__ = ["BoxCost", "Cost", "cost"]

_VIEWS = (
    "t", "transpose", "reshape", "expand", "permute", "unsqueeze", "squeeze", "select",
    "slice", "split", "unbind", "detach", "alias", "diagonal", "as_strided", "split_with_sizes",
    "_reshape_alias",
)  # fmt: skip
_MOVES = (
    "clone", "cat", "stack", "index", "gather", "embedding", "copy", "full", "zeros", "ones",
    "zeros_like", "ones_like", "empty", "empty_like", "arange", "select_scatter", "slice_scatter",
    "constant_pad_nd", "_to_copy", "diag_embed", "scalar_tensor", "full_like", "repeat", "flip",
)  # fmt: skip


@dataclass(frozen=True)
class BoxCost:
    """The cost of one box.

    Attributes
    ----------
    name, operation
        Which box, and what it does.
    flops
        Additions and multiplications; zero for what only moves or views numbers.
    multiplications
        Of a product or a convolution: half of its FLOPs.
    bytes
        Read and written.
    memory
        Alive while the box runs, in bytes: leaves, and values that are still needed.
    growth
        How the work grows, ``"O(N D M)"``.
    counted
        Whether torch's own counter counts it: products and convolutions.
    """

    name: str
    operation: str
    flops: int
    multiplications: int
    bytes: int
    memory: int
    growth: str
    counted: bool


@dataclass(frozen=True)
class Cost:
    """The cost of every box of a graph, and the totals.

    Attributes
    ----------
    boxes
        One line for each operation, in the order of the graph.
    """

    boxes: tuple[BoxCost, ...]

    @property
    def flops(self) -> int:
        """All additions and multiplications."""
        return sum(box.flops for box in self.boxes)

    @property
    def product_flops(self) -> int:
        """Those of products and convolutions, which is what torch's own counter counts."""
        return sum(box.flops for box in self.boxes if box.counted)

    @property
    def bytes(self) -> int:
        """Bytes read and written."""
        return sum(box.bytes for box in self.boxes)

    @property
    def peak_memory(self) -> int:
        """Largest number of bytes alive at a time, when values are freed after their last use."""
        return max((box.memory for box in self.boxes), default=0)

    def __getitem__(self, name: str) -> BoxCost:
        return next(box for box in self.boxes if box.name == name)

    def __str__(self) -> str:
        rows = [
            (b.name, b.growth, f"{b.flops:,}", f"{b.bytes:,}", f"{b.memory:,}") for b in self.boxes
        ]
        rows += [("total", "", f"{self.flops:,}", f"{self.bytes:,}", f"{self.peak_memory:,}")]
        head = ("box", "growth", "FLOPs", "bytes", "memory")
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        sides = ("<", "<", ">", ">", ">")
        return "\n".join(
            "  ".join(
                f"{cell:{side}{width}}"
                for cell, side, width in zip(row, sides, widths, strict=True)
            )
            for row in (head, *rows)
        )


def cost(graph: BoxGraph) -> Cost:
    """Count every box of a graph.

    Parameters
    ----------
    graph
        What to count; its shapes are those it was traced with.
    """
    memory = _memory(graph)
    return Cost(tuple(_cost(box, memory[box]) for box in graph.order if not box.is_leaf))


def _cost(box: Box, memory: int) -> BoxCost:
    counted = _counter(box)
    flops = counted if counted is not None else _elementwise(box)
    moved = 0 if _is_view(box) else _size(box) + sum(_size(parent) for parent in box.parents)
    return BoxCost(
        box.name,
        box.operation,
        flops,
        flops // 2 if counted is not None else flops * (box.operation in ("mul", "div", "pow")),
        moved,
        memory,
        _growth(box),
        counted is not None,
    )


def _counter(box: Box) -> int | None:
    """FLOPs by torch's own table, or None where it has no entry."""
    rule = flop_registry.get(getattr(box.op, "overloadpacket", None))
    if rule is None:
        return None
    values = {parent: parent.value for parent in box.parents}
    args, kwargs = fill(box.args, values), fill(box.kwargs, values)
    return int(rule(*args, **kwargs, out_val=box.value))


def _elementwise(box: Box) -> int:
    """One FLOP for each number computed, or read by a reduction."""
    return 0 if _is_view(box) or box.operation in _MOVES else prod(_widest(box))


def _widest(box: Box) -> tuple[int, ...]:
    """The largest shape that an operation reads or writes."""
    shapes = [shape for b in (box, *box.parents) for shape in _shapes(b)]
    return max(shapes, key=prod)


def _shapes(box: Box) -> tuple[tuple[int, ...], ...]:
    return box.shape if box.has_several_outputs else (box.shape,)


def _is_view(box: Box) -> bool:
    return box.op is operator.getitem or box.operation in _VIEWS


def _size(box: Box) -> int:
    """Bytes of a value."""
    parts = box.leaf if box.has_several_outputs else (box.leaf,)
    return sum(p.numel() * p.element_size() for p in parts if isinstance(p, Tensor))


def _memory(graph: BoxGraph) -> dict[Box, int]:
    """Bytes alive at each box: the leaves, and every value up to its last reader."""
    owner = {box: _owner(box) for box in graph.order}
    last: dict[Box, Box | None] = {owner[box]: box for box in graph.order}
    for box in graph.order:
        for parent in box.parents:
            last[owner[parent]] = box
    for box in graph.ends:
        last[owner[box]] = None  # returned, so never freed
    alive = sum(_size(box) for box in graph.order if box.is_leaf)
    found: dict[Box, int] = {}
    for box in graph.order:
        if box.is_leaf:
            continue
        alive += _size(box) if owner[box] is box else 0
        found[box] = alive
        done = dict.fromkeys(owner[b] for b in (*box.parents, box))
        alive -= sum(_size(b) for b in done if last[b] is box and not b.is_leaf)
    return found


def _owner(box: Box) -> Box:
    """The box whose memory a view shows."""
    while not box.is_leaf and _is_view(box):
        box = box.parents[0]
    return box


# ---- growth ----

_PRODUCTS = {
    "mm": "N D M",
    "addmm": "N D M",
    "bmm": "B N D M",
    "baddbmm": "B N D M",
    "mv": "N D",
    "addmv": "N D",
    "dot": "N",
    "vdot": "N",
}
_CUBIC = (
    "linalg_inv_ex", "linalg_solve", "cholesky", "linalg_cholesky_ex", "_linalg_svd", "linalg_qr",
    "_linalg_eigh", "_linalg_det", "_linalg_slogdet", "_linalg_solve_ex",
)  # fmt: skip
_LETTERS = {0: (), 1: ("N",), 2: ("N", "M"), 3: ("B", "N", "M"), 4: ("B", "C", "H", "W")}


def _growth(box: Box) -> str:
    """Growth class: the letters are the sizes, as the notes call them."""
    if box.operation in _PRODUCTS:
        return f"O({_PRODUCTS[box.operation]})"
    if box.operation == "convolution":
        space = ("L",), ("H", "W"), ("T", "H", "W")
        taps = ("R",), ("R", "S"), ("Q", "R", "S")
        rank = len(box.args[1].shape) - 3
        return f"O({' '.join(('B', 'K', 'C', *space[rank], *taps[rank]))})"
    if box.operation in _CUBIC:
        return "O(N^3)"
    if box.op is operator.getitem:
        return "O(1)"
    if box.operation in ("t", "transpose"):
        return "O(N D)" if len(box.shape) == 2 else _letters(len(box.shape))
    more = " log N" if box.operation in ("sort", "topk") else ""
    shape = box.shape if box.operation in (*_VIEWS, *_MOVES) else _widest(box)
    return _letters(len(shape), more)


def _letters(rank: int, more: str = "") -> str:
    letters = _LETTERS.get(rank) or tuple(f"N{i + 1}" for i in range(rank))
    return f"O({' '.join(letters)}{more})" if letters else "O(1)"
