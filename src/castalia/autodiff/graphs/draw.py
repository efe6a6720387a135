"""Images of computation graphs: values flow down, adjoints flow back up.

Operations are boxes and given tensors are pills. Beside every edge stand the value that flows along
it and, after ``bprop``, the adjoint that comes back. The colour of a box is the size of its
adjoint, so a gradient that vanishes or explodes on its way is seen at a glance.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from castalia.autodiff.graphs.box import Box
from castalia.autodiff.graphs.box_graph import BoxGraph
from castalia.autodiff.graphs.folded_nodes import Node, fold, magnitude
from castalia.autodiff.graphs.layout import Layout, lay_out
from castalia.errors import InvalidParameter

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw", "figure_of"]

SHOW_ALL = 14  # operations up to which every box is drawn on its own
WRITE_ON_EDGES = 40  # nodes up to which edges carry numbers
ROW, CHARACTER, TALL = 1.05, 0.082, 0.42  # inches: between layers, of a letter, of a box
ROOM = 1.3  # inches a node takes where numbers stand beside its edges
KINDS = ("png", "svg", "pdf")
INK, FORWARD, BACKWARD, PLAIN = "#3c4043", "#5f6b7a", "#b3470c", "#eef1f5"


def draw(graph: BoxGraph, path: str | os.PathLike[str], fold: bool | None = None) -> Path:
    """Write an image of a graph; see ``Graph.draw``."""
    path = Path(path)
    if path.suffix.lstrip(".").lower() not in KINDS:
        raise InvalidParameter(f"Graph.draw: `path` must end in .png, .svg or .pdf; got '{path}'.")
    figure = figure_of(graph, fold)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    return path


def figure_of(graph: BoxGraph, folded: bool | None = None) -> Figure:
    """Return the image as a figure of matplotlib."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    operations = sum(not box.is_leaf for box in graph.order)
    nodes = fold(graph, operations > SHOW_ALL if folded is None else folded)
    written = len(nodes) <= WRITE_ON_EDGES
    widths = {node: _width(node) for node in nodes}
    room = {node: max(width, ROOM if written else 0) for node, width in widths.items()}
    parents = {node: node.parents for node in nodes}
    layout = lay_out(parents, room, _late(nodes))  # type: ignore[arg-type]
    scale = _Scale(nodes)
    legend = 1.1 if scale.known else 0.0
    figure = Figure(figsize=(layout.width + 0.6 + legend, ROW * layout.height + 0.3))
    FigureCanvasAgg(figure)
    figure.patch.set_facecolor("white")
    wide, high = figure.get_size_inches()
    ax = figure.add_axes((0, 0, (wide - legend) / wide, 1))
    ax.set(xlim=(-0.3, layout.width + 0.3), ylim=(-ROW * layout.height + 0.3, 0.6))
    ax.axis("off")
    readers = Counter(parent for node in nodes for parent in node.parents)
    for node in nodes:
        for parent in node.parents:
            long = bool(layout.bends[parent, node])
            near = _where(len(node.parents), readers[parent], long) if written else None
            _edge(ax, layout, parent, node, near, scale)
    for node in nodes:
        _node(ax, layout.place[node], widths[node], node, scale)
        if not readers[node]:
            _result(ax, layout.place[node], node)
    if scale.known:
        _legend(figure, scale, (wide - legend + 0.25) / wide, high)
    return figure


def _late(nodes: list[Node]) -> frozenset[Node]:
    """Leaves, and what is computed from parameters and constants alone."""
    late: set[Node] = set()
    for node in nodes:
        from_input = any(p not in late or p.end.kind == "input" for p in node.parents)
        if node.is_leaf or not from_input:
            late.add(node)
    return frozenset(late)


def _where(parents: int, readers: int, long: bool) -> float | None:
    """Where on an edge its numbers collide with no others; nowhere in a thicket."""
    if readers > 1:
        return None if long or (parents > 1 and readers > 2) else 0.78
    return 0.22 if parents > 1 else 0.5


class _Scale:
    """Colours for the sizes of adjoints, by their logarithm."""

    def __init__(self, nodes: list[Node]) -> None:
        from matplotlib import colormaps
        from matplotlib.colors import LogNorm

        sizes = [s for s in (node.size for node in nodes) if s]
        self.known = bool(sizes)
        low, high = (min(sizes), max(sizes)) if sizes else (1.0, 1.0)
        if high < 100 * low:  # at least two orders: small differences are no alarm
            middle = math.sqrt(low * high)
            low, high = middle / 10, middle * 10
        self.low, self.norm, self.map = low, LogNorm(low, high), colormaps["YlOrRd"]

    def colour(self, size: float | None) -> Any:
        """Pale for small adjoints, red for large ones; grey where there is none."""
        if not self.known or size is None:
            return PLAIN
        return self.map(0.85 * float(self.norm(max(size, self.low)))) if size else "white"


def _width(node: Node) -> float:
    longest = max(len(line) for line in _lines(node))
    return max(0.62, CHARACTER * longest + 0.22)


def _lines(node: Node) -> list[str]:
    shape = _shape(node.end.shape)
    if node.is_leaf:
        return [node.title, f"{node.name} {shape}"]
    lines = [node.title]
    if node.name and node.name != node.title:
        lines.append(node.name)
    if node.parameters is not None:
        lines.append(f"∂θ {_number(node.parameters)}")
    return lines


def _node(ax: Axes, place: tuple[float, float], width: float, node: Node, scale: _Scale) -> None:
    from matplotlib.colors import to_rgb
    from matplotlib.patches import FancyBboxPatch

    x, y = place[0], -ROW * place[1]
    lines = _lines(node)
    tall = TALL + 0.13 * max(0, len(lines) - 2)
    shape = f"round,pad=0,rounding_size={0.2 if node.is_leaf else 0.05}"
    style = {"input": "#dbe8f8", "parameter": "#e3f1e4"}.get(node.end.kind, "#f1f1f1")
    face = style if node.is_leaf and not scale.known else scale.colour(node.size)
    edge = {"input": "#3b7dd8", "parameter": "#2f9463"}.get(node.end.kind, INK)
    patch = FancyBboxPatch(
        (x - width / 2, y - tall / 2),
        width,
        tall,
        boxstyle=shape,
        facecolor=face,
        edgecolor=edge,
        linewidth=1.1 if node.is_leaf else 0.9,
        zorder=3,
    )
    ax.add_patch(patch)
    dark = sum(to_rgb(patch.get_facecolor())) < 1.5
    ink = "white" if dark else INK
    for i, line in enumerate(lines):
        at = y + 0.145 * ((len(lines) - 1) / 2 - i)
        first = i == 0
        ax.text(
            x,
            at,
            line,
            ha="center",
            va="center",
            fontsize=8.5 if first else 6.8,
            fontweight="bold" if first and not node.is_leaf else "normal",
            color=ink,
            zorder=4,
        )


def _result(ax: Axes, place: tuple[float, float], node: Node) -> None:
    """Write what the graph gives, and the adjoint it was given."""
    x, y = place[0], -ROW * place[1] - 0.36
    if isinstance(node.end.value, Tensor):
        ax.text(x - 0.03, y, _text(node.end.value), ha="right", fontsize=6.5, color=FORWARD)
    if isinstance(node.end.adjoint, Tensor):
        ax.text(x + 0.03, y, _text(node.end.adjoint), ha="left", fontsize=6.5, color=BACKWARD)


def _edge(
    ax: Axes, layout: Layout, parent: Node, child: Node, near: float | None, scale: _Scale
) -> None:
    """Draw the value going down on the left and the adjoint coming back on the right.

    ``near`` says where on the way the numbers stand, from 0 at the parent to 1; None writes none.
    """
    start, end = layout.place[parent], layout.place[child]
    points = [start, *layout.bends[parent, child], end]
    source = _between(parent, child)
    sent = source.value if source is not None else None
    back = _contribution(source, child) if source is not None else None
    _arrow(ax, points, FORWARD, -0.05 if back is not None else 0.0, up=False)
    if back is not None:
        colour = scale.colour(magnitude(back))
        _arrow(ax, points, _darker(colour), 0.05, up=True)
    if near is None:
        return
    x, y = _between_points(points, near)
    if isinstance(sent, Tensor):
        ax.text(x - 0.09, y, _text(sent), ha="right", va="center", fontsize=6.5, color=FORWARD)
    if back is not None:
        ax.text(x + 0.09, y, _text(back), ha="left", va="center", fontsize=6.5, color=BACKWARD)


def _arrow(ax: Axes, points: list[Any], colour: Any, shift: float, *, up: bool) -> None:
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path as Curve

    down = [(x + shift, -ROW * y) for x, y in points]
    (x0, y0), (x1, y1) = down[0], down[-1]
    down[0], down[-1] = (x0, y0 - 0.22), (x1, y1 + 0.24)
    codes, corners = [Curve.MOVETO], [down[0]]
    for a, b in zip(down, down[1:], strict=False):
        middle = (a[1] + b[1]) / 2
        corners += [(a[0], middle), (b[0], middle), b]
        codes += [Curve.CURVE4] * 3
    curve = Curve(corners[::-1], codes) if up else Curve(corners, codes)
    ax.add_patch(
        FancyArrowPatch(
            path=curve,
            arrowstyle="-|>,head_length=3,head_width=1.6",
            linewidth=0.9,
            color=colour,
            zorder=2,
        )
    )


def _between_points(points: list[Any], near: float) -> tuple[float, float]:
    """A point on the first or the last piece of an edge, which is an S-shaped curve."""
    (x0, y0), (x1, y1) = points[:2] if near < 0.6 else points[-2:]
    down = 0.25 + 0.5 * near
    ease = near * near * (3 - 2 * near)
    return x0 + ease * (x1 - x0), -ROW * (y0 + down * (y1 - y0))


def _between(parent: Node, child: Node) -> Box | None:
    """The box of one node that another reads; the last where it reads several."""
    read = [p for box in child.boxes for p in box.parents if p in parent.boxes]
    return read[-1] if read else None


def _contribution(source: Box, child: Node) -> Tensor | None:
    """What the boxes of a node send back to one that they read, summed."""
    parts = [_pulled(box, source) for box in child.boxes if source in box.parents]
    known = [part for part in parts if part is not None]
    return sum(known[1:], known[0]) if known else None


def _pulled(box: Box, source: Box) -> Tensor | None:
    values = [p.value for p in box.parents if p.value is not None]
    if box.adjoint is None or len(values) < len(box.parents):
        return None
    parts = box.bprop(box.adjoint, *values)
    part = dict(zip(box.parents, parts, strict=True))[source]
    return part if isinstance(part, Tensor) else None


def _legend(figure: Figure, scale: _Scale, left: float, high: float) -> None:
    from matplotlib.cm import ScalarMappable

    tall = min(0.8, 2.4 / high)
    ax = figure.add_axes((left, 0.5 - tall / 2, 0.014 + 0.05 / high, tall))
    bar = figure.colorbar(ScalarMappable(scale.norm, scale.map), cax=ax)
    bar.set_label("size of the adjoint (RMS)", fontsize=7, color=INK)
    bar.ax.tick_params(labelsize=6.5, colors=INK)
    bar.outline.set_visible(False)  # type: ignore[operator]


def _darker(colour: Any) -> Any:
    from matplotlib.colors import to_rgb

    return tuple(0.72 * part for part in to_rgb(colour))


def _text(value: Tensor) -> str:
    """A few numbers as they are, more of them as shape and size."""
    flat = value.detach().reshape(-1)
    if len(flat) == 1:
        return _number(flat.item())
    if len(flat) <= 3:
        return f"({', '.join(_number(v) for v in flat.tolist())})"
    if not value.is_floating_point():
        return _shape(tuple(value.shape))
    return f"{_shape(tuple(value.shape))}: {_number(magnitude(value) or 0.0)}"


def _number(value: float) -> str:
    if value != value or value in (math.inf, -math.inf):
        return str(value)
    return f"{value:.3g}".replace("e-0", "e-").replace("e+0", "e").replace("-", "−")


def _shape(shape: Any) -> str:
    return "×".join(str(n) for n in shape) if shape else ""
