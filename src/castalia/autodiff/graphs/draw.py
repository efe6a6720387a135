"""Images of computation graphs: values flow down, adjoints flow back up.

Operations are boxes and given tensors are pills. Beside every edge stand the value that flows along
it and, after ``bprop``, the adjoint that comes back. The colour of a box is the size of its
adjoint, so a gradient that vanishes or explodes on its way is seen at a glance.
"""

from __future__ import annotations

import io
import math
import os
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from castalia.autodiff.graphs.box import Box
from castalia.autodiff.graphs.box_graph import BoxGraph
from castalia.autodiff.graphs.box_values import add
from castalia.autodiff.graphs.folded_nodes import Node, fold, magnitude
from castalia.autodiff.graphs.layout import Layout, lay_out
from castalia.errors import InvalidParameter

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw", "figure_of", "html_of"]

SHOW_ALL = 14  # operations up to which every box is drawn on its own
WRITE_ON_EDGES = 40  # nodes up to which edges carry numbers
ROW, CHARACTER, TALL = 1.05, 0.082, 0.42  # inches: between layers, of a letter, of a box
ROOM = 1.3  # inches a node takes where numbers stand beside its edges
KINDS = ("png", "svg", "pdf")
LONGEST = 14_000  # pixels of a side of a PNG
_SVG = re.compile(r"^.*?<svg", re.DOTALL)
INK, FORWARD, BACKWARD, PLAIN = "#3c4043", "#5f6b7a", "#b3470c", "#eef1f5"


def draw(graph: BoxGraph, path: str | os.PathLike[str], fold: bool | None = None) -> Path:
    """Write an image of a graph; see ``Graph.draw``."""
    path = Path(path)
    if path.suffix.lstrip(".").lower() not in KINDS:
        raise InvalidParameter(f"Graph.draw: `path` must end in .png, .svg or .pdf; got '{path}'.")
    figure = figure_of(graph, fold)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, **_resolution(figure, path))
    return path


def html_of(graph: BoxGraph) -> str:
    """Return the image as an SVG for a notebook."""
    file = io.StringIO()
    figure_of(graph).savefig(file, format="svg")
    return (
        f'<div style="overflow:auto;max-height:60em">{_SVG.sub("<svg", file.getvalue(), 1)}</div>'
    )


def _resolution(figure: Figure, path: Path) -> dict[str, Any]:
    """Return 150 dots an inch, fewer for a very long image, whose compression takes seconds."""
    dots = min(150.0, LONGEST / max(figure.get_size_inches()))
    png = path.suffix.lower() == ".png"
    return {"dpi": dots, **({"pil_kwargs": {"compress_level": 1}} if png else {})}


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
    arrows = _Arrows()
    for node in nodes:
        sent_back = _contributions(node)
        for parent in node.parents:
            long = bool(layout.bends[parent, node])
            near = _where(len(node.parents), readers[parent], long) if written else None
            source = _between(parent, node)
            back = sent_back.get(source)
            _edge(ax, arrows, layout, (parent, node), source, back, near, scale)
    arrows.draw(ax)
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
        self.low, self.high, self.map = low, high, colormaps["YlOrRd"]
        self.norm = LogNorm(low, high)

    def colour(self, size: float | None) -> Any:
        """Pale for small adjoints, red for large ones; grey where there is none."""
        if not self.known or size is None:
            return PLAIN
        if not size:
            return "white"
        return self.map(0.85 * math.log(max(size / self.low, 1.0)) / math.log(self.high / self.low))


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
    ax.add_artist(patch)
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
    ax: Axes,
    arrows: _Arrows,
    layout: Layout,
    ends: tuple[Node, Node],
    source: Box | None,
    back: Tensor | None,
    near: float | None,
    scale: _Scale,
) -> None:
    """Draw the value going down on the left and the adjoint coming back on the right.

    ``near`` says where on the way the numbers stand, from 0 at the parent to 1; None writes none.
    """
    start, end = layout.place[ends[0]], layout.place[ends[1]]
    points = [start, *layout.bends[ends], end]
    sent = source.value if source is not None else None
    arrows.add(points, FORWARD, -0.05 if back is not None else 0.0, up=False)
    if back is not None:
        colour = scale.colour(magnitude(back))
        arrows.add(points, _darker(colour), 0.05, up=True)
    if near is None:
        return
    x, y = _between_points(points, near)
    if isinstance(sent, Tensor):
        ax.text(x - 0.09, y, _text(sent), ha="right", va="center", fontsize=6.5, color=FORWARD)
    if back is not None:
        ax.text(x + 0.09, y, _text(back), ha="left", va="center", fontsize=6.5, color=BACKWARD)


class _Arrows:
    """Curves with heads, gathered so that matplotlib draws them all at once."""

    def __init__(self) -> None:
        self.curves: list[Any] = []
        self.heads: list[Any] = []
        self.colours: list[Any] = []

    def add(self, points: list[Any], colour: Any, shift: float, *, up: bool) -> None:
        """Go down through points, or up; the colour is that of curve and head."""
        from matplotlib.path import Path as Curve

        down = [(x + shift, -ROW * y) for x, y in points]
        (x0, y0), (x1, y1) = down[0], down[-1]
        down[0], down[-1] = (x0, y0 - 0.22), (x1, y1 + 0.24)
        codes, corners = [Curve.MOVETO], [down[0]]
        for a, b in zip(down, down[1:], strict=False):
            middle = (a[1] + b[1]) / 2
            corners += [(a[0], middle), (b[0], middle), b]
            codes += [Curve.CURVE4] * 3
        self.curves.append(Curve(corners, codes))
        (x, y), way = (down[0], 1) if up else (down[-1], -1)  # the ends of the curve are upright
        self.heads.append([(x, y), (x - 0.022, y - 0.05 * way), (x + 0.022, y - 0.05 * way)])
        self.colours.append(colour)

    def draw(self, ax: Axes) -> None:
        """Put all of them on the axes."""
        from matplotlib.collections import PathCollection, PolyCollection

        lines = PathCollection(self.curves, facecolors="none", edgecolors=self.colours, zorder=2)
        lines.set_linewidth(0.9)
        ax.add_collection(lines, autolim=False)
        heads = PolyCollection(self.heads, facecolors=self.colours, edgecolors="none", zorder=2)
        ax.add_collection(heads, autolim=False)


def _between_points(points: list[Any], near: float) -> tuple[float, float]:
    """A point on the first or the last piece of an edge, which is an S-shaped curve."""
    (x0, y0), (x1, y1) = points[:2] if near < 0.6 else points[-2:]
    down = 0.25 + 0.5 * near
    ease = near * near * (3 - 2 * near)
    return x0 + ease * (x1 - x0), -ROW * (y0 + down * (y1 - y0))


def _between(parent: Node, child: Node) -> Box | None:
    """The box of one node that another reads; the last where it reads several."""
    given = set(parent.boxes)
    read = [p for box in child.boxes for p in box.parents if p in given]
    return read[-1] if read else None


def _contributions(node: Node) -> dict[Box | None, Tensor]:
    """What the boxes of a node send back to each box they read, summed."""
    inside, found = set(node.boxes), dict[Box | None, Any]()
    for box in node.boxes:
        if box.is_leaf or box.adjoint is None or inside.issuperset(box.parents):
            continue
        values = {parent: parent.leaf for parent in box.parents}
        for parent, part in zip(
            box.parents, box.pull(box.output, values, box.adjoint), strict=True
        ):
            found[parent] = add(found.get(parent), part)
    return {box: part for box, part in found.items() if isinstance(part, Tensor)}


def _legend(figure: Figure, scale: _Scale, left: float, high: float) -> None:
    from matplotlib.cm import ScalarMappable

    tall = min(0.8, 2.4 / high)
    ax = figure.add_axes((left, 0.5 - tall / 2, 0.014 + 0.05 / high, tall))
    bar = figure.colorbar(ScalarMappable(scale.norm, scale.map), cax=ax)
    bar.set_label("size of the adjoint (RMS)", fontsize=7, color=INK)
    bar.ax.tick_params(labelsize=6.5, colors=INK)
    bar.minorticks_off()
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
