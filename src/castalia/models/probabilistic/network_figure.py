"""A directed graph drawn in layers, parents above children."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import numpy as np

from castalia.probability.d_separation import topological_order
from castalia.utils.figure_style import COLOURS, INK, label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text

__all__ = ["draw_network", "layered_places"]

ROUNDS = 8  # of sorting each layer by the middle of its neighbours
WIDEST = 9  # nodes side by side


def layered_places(parents: Mapping[str, Collection[str]]) -> dict[str, tuple[float, float]]:
    """Return a place (x, y) for every node: parents above children and near them, few crossings.

    >>> layered_places({"a": [], "b": ["a"]})
    {'a': (0.0, 0.0), 'b': (0.0, -1.0)}
    """
    depth: dict[str, int] = {}
    for name in topological_order(parents):
        depth[name] = 1 + max((depth[p] for p in parents[name]), default=-1)
    below: dict[str, list[str]] = {n: [] for n in parents}
    for child, above in parents.items():
        for parent in above:
            below[parent].append(child)
    for name in parents:  # what has no parents stands right above its first child
        if not parents[name] and below[name]:
            depth[name] = min(depth[child] for child in below[name]) - 1
    layers = [[n for n in parents if depth[n] == d] for d in range(max(depth.values()) + 1)]
    layers = [part for layer in layers for part in _pieces(layer)]
    near = {n: [*above, *below[n]] for n, above in parents.items()}
    x = {n: i - (len(layer) - 1) / 2 for layer in layers for i, n in enumerate(layer)}
    for _ in range(ROUNDS):
        for layer in layers:
            middle = {n: np.mean([x[m] for m in near[n]]) if near[n] else x[n] for n in layer}
            layer.sort(key=lambda n: middle[n])
            x |= {n: i - (len(layer) - 1) / 2 for i, n in enumerate(layer)}
    y = {n: 0.0 - d for d, layer in enumerate(layers) for n in layer}
    return {n: (float(x[n]), y[n]) for n in parents}


def _pieces(layer: list[str]) -> list[list[str]]:
    """Cut a layer that is too wide into several."""
    count = -(-len(layer) // WIDEST)
    return [layer[i::count] for i in range(count)]


def draw_network(parents: Mapping[str, Collection[str]], target: str | None = None) -> Figure:
    """Draw a graph with an arrow from every parent to its child.

    Parameters
    ----------
    parents
        Parents of every node.
    target
        A node to fill.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    place = layered_places(parents)
    xs, ys = zip(*place.values(), strict=True)
    wide, high = max(xs) - min(xs) + 1, max(ys) - min(ys) + 1
    figure = Figure(figsize=(min(1.7 * wide + 0.6, 13), 1.05 * high + 0.4), layout="constrained")
    FigureCanvasAgg(figure)
    ax = figure.add_subplot()
    boxes = {name: _box(ax, name, place[name], name == target) for name in place}
    for child, above in parents.items():
        for parent in above:
            _arrow(ax, boxes[parent], boxes[child])
    ax.set(xlim=(min(xs) - 0.6, max(xs) + 0.6), ylim=(min(ys) - 0.5, max(ys) + 0.5))
    ax.axis("off")
    return figure


def _box(ax: Axes, name: str, place: tuple[float, float], chosen: bool) -> Text:
    box = {
        "boxstyle": "round,pad=0.4",
        "facecolor": COLOURS[0] if chosen else "white",
        "edgecolor": COLOURS[0] if chosen else INK,
    }
    colour = "white" if chosen else "#33363a"
    return ax.text(
        *place, label(name, 20), ha="center", va="center", fontsize=9, color=colour, bbox=box
    )


def _arrow(ax: Axes, start: Text, end: Text) -> None:
    """Draw an arrow from box to box, bent where it would run through a layer in between."""
    (_, from_y), (_, to_y) = start.get_position(), end.get_position()
    far = abs(from_y - to_y) > 1 or from_y == to_y
    ax.annotate(
        "",
        xy=end.get_position(),
        xytext=start.get_position(),
        zorder=2,  # below the boxes
        arrowprops={
            "arrowstyle": "-|>",
            "color": INK,
            "lw": 1.1,
            "patchA": start.get_bbox_patch(),
            "patchB": end.get_bbox_patch(),
            "shrinkA": 0,
            "shrinkB": 1,
            "connectionstyle": "arc3,rad=0.18" if far else "arc3",
        },
    )
