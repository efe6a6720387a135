"""The figures of a graph: a part of it, edges between classes, and which neighbours mattered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from castalia.evaluate import to_svg
from castalia.method.report.guarded_figure import Drawing, guarded
from castalia.utils.figure_style import COLOURS, INK, MUTED, caption, heat, label, start

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["graph_drawings"]

MANY = 7  # classes with a colour of their own


def graph_drawings(found: Mapping[str, Any]) -> list[Drawing]:
    """Draw what there is: the graph, edges between classes, scores by neighbours, reasons."""
    drawn = [guarded("The graph", lambda: _part(found))] if found.get("part") else []
    if found.get("gallery"):
        drawn.append(guarded("Some of the graphs", lambda: _gallery(found["gallery"])))
    if found.get("between"):
        drawn.append(guarded("Edges between classes", lambda: _between(found)))
    if found.get("by_share"):
        drawn.append(guarded("Along edges", lambda: _by_share(found)))
    if found.get("reasons"):
        drawn.append(guarded("Which neighbours mattered", lambda: _reasons(found)))
    return drawn


def _part(found: Mapping[str, Any]) -> tuple[Markup, str]:
    part = found["part"]
    places, kinds = np.array(part["places"]), np.array(part["kinds"])
    wrong = np.array(part["wrong"], dtype=bool)
    ax, figure = start(None, (7, 5.2), grid="none")
    _lines(ax, places, np.array(part["edges"], dtype=int).reshape(-1, 2))
    _links(ax, places, part)
    _dots(ax, places, kinds, found.get("classes") or [], size=34)
    if wrong.any():
        x, y = places[wrong].T
        ring = ax.scatter(x, y, s=95, facecolors="none", edgecolors=INK, linewidths=1.6, zorder=4)
        ring.set_label("answered wrongly")
    _bare(ax)
    if ax.get_legend_handles_labels()[1]:
        caption(ax, 4)
    total = int(part["total"])
    words = f"All {total:,} nodes." if total == len(places) else ""
    words = words or f"{len(places):,} of {total:,} nodes, around one that was tested."
    words = f"{words} {part.get('words', '')}".strip()
    return Markup(to_svg(figure, f"Drawing of the graph. {words}", "graph-part")), words


def _links(ax: Axes, places: np.ndarray, part: Mapping[str, Any]) -> None:
    """Draw links that were hidden: those found, and those missed."""
    looks = {"found": (COLOURS[2], "hidden and found"), "missed": (COLOURS[1], "hidden and missed")}
    for key, (colour, words) in looks.items():
        ends = np.array(part.get(key) or [], dtype=int).reshape(-1, 2)
        for number, (u, v) in enumerate(ends):
            name = words if number == 0 else None
            ax.plot(*places[[u, v]].T, color=colour, linewidth=1.8, label=name, zorder=2)


def _lines(ax: Axes, places: np.ndarray, edges: np.ndarray) -> None:
    from matplotlib.collections import LineCollection

    lines = LineCollection(list(places[edges]), colors=INK, alpha=0.35, linewidths=0.8, zorder=1)
    ax.add_collection(lines)


def _dots(
    ax: Axes, places: np.ndarray, kinds: np.ndarray, classes: Sequence[Any], size: float
) -> None:
    """Draw nodes in the colour of their class; those of no known class, or of a late one, grey."""
    shown = min(len(classes), MANY)
    for number in range(shown):
        here = kinds == number
        if here.any():
            x, y = places[here].T
            name = label(classes[number], 16)
            ax.scatter(x, y, s=size, color=COLOURS[number], label=name, zorder=3)
    rest = (kinds < 0) | (kinds >= shown)
    if rest.any():
        x, y = places[rest].T
        words = "class not known" if shown == len(classes) else "others"
        dots = ax.scatter(x, y, s=0.6 * size, color=MUTED, zorder=3)
        dots.set_label(words if classes else "")


def _bare(ax: Axes) -> None:
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    ax.margins(0.06)


def _between(found: Mapping[str, Any]) -> tuple[Markup, str]:
    counts, names = np.array(found["between"], dtype=float), found["classes"]
    share = counts / counts.sum(axis=1, keepdims=True).clip(min=1)
    side = 2.2 + 0.42 * len(names)
    ax, figure = start(None, (side + 0.8, side), grid="none")
    ax.imshow(share, cmap=heat(), vmin=0, vmax=1)
    for row, column in np.ndindex(share.shape):
        ink = "white" if share[row, column] > 0.6 else INK
        text = f"{100 * share[row, column]:.0f}"
        ax.text(column, row, text, ha="center", va="center", color=ink, fontsize=9)
    ticks = [label(name, 12) for name in names]
    ax.set_xticks(range(len(names)), ticks, rotation=45, ha="right")
    ax.set_yticks(range(len(names)), ticks)
    ax.set(xlabel="class of the neighbour", ylabel="class of the node")
    same = 100 * counts.trace() / max(1.0, counts.sum())
    words = (
        f"Of the neighbours of each class, % in each class. {same:.0f} % of the edges stay inside."
    )
    return Markup(to_svg(figure, words, "edges-between")), words


def _by_share(found: Mapping[str, Any]) -> tuple[Markup, str]:
    bars = found["by_share"]
    ax, figure = start(None, (5, 3), grid="y")
    places = np.arange(len(bars))
    ax.bar(places, [bar["accuracy"] for bar in bars], color=COLOURS[0], width=0.7)
    names = [f"{100 * b['low']:.0f}–{100 * b['high']:.0f} %\n{b['nodes']:,} nodes" for b in bars]
    ax.set_xticks(places, names)
    ax.set(ylim=(0, 1.02), ylabel="accuracy", xlabel="neighbours of the node's own class")
    few, most = bars[0], bars[-1]
    words = (
        f"Accuracy of tested nodes is {most['accuracy']:.2f} where {100 * most['low']:.0f} to "
        f"{100 * most['high']:.0f} % of the neighbours are of the same class"
    )
    if few is not most:
        words += f", {few['accuracy']:.2f} where at most {100 * few['high']:.0f} % are"
    return Markup(to_svg(figure, f"{words}.", "by-share")), f"{words}."


def _reasons(found: Mapping[str, Any]) -> tuple[Markup, str]:
    cases = found["reasons"]
    figure, axes = _axes(1, len(cases), 3.7)
    for ax, case in zip(axes[0], cases, strict=True):
        _reason(ax, case, found.get("classes") or [])
    words = (
        "Edges that moved the answer most, by integrated gradients: green ones speak for it, red "
        "ones against; the wider, the more. Nodes have the colour of their class."
    )
    names = "; ".join(f"{case['title']}".replace("\n", " ") for case in cases)
    return Markup(to_svg(figure, f"{words} Nodes: {names}.", "reasons")), words


def _reason(ax: Axes, case: Mapping[str, Any], classes: Sequence[Any]) -> None:
    places, shares = np.array(case["places"]).reshape(-1, 2), np.array(case["shares"], dtype=float)
    most = max(np.abs(shares).max(initial=0), 1e-12)
    for (u, v), share in zip(case["edges"], shares, strict=True):
        colour = COLOURS[2] if share > 0 else COLOURS[4]
        ax.plot(*places[[u, v]].T, color=colour, linewidth=0.6 + 4 * abs(share) / most, zorder=1)
    _dots(ax, places, np.array(case["kinds"]), classes, size=60)
    x, y = places[case["node"]]
    ax.scatter(x, y, s=190, facecolors="none", edgecolors=INK, linewidths=1.8)
    for number, name in enumerate(case["names"]):
        ax.annotate(
            label(name, 10),
            places[number],
            (4, 5),
            textcoords="offset points",
            fontsize=7.5,
            color=INK,
        )
    ax.set_title(case["title"], fontsize=9, color=INK)
    _bare(ax)


def _gallery(rows: Sequence[Mapping[str, Any]]) -> tuple[Markup, str]:
    wide = max(len(row["graphs"]) for row in rows)
    figure, axes = _axes(len(rows), wide, 1.9)
    for line, row in zip(axes, rows, strict=True):
        for ax in line:
            ax.set_axis_off()
        for ax, graph in zip(line, row["graphs"], strict=False):
            places = np.array(graph["places"]).reshape(-1, 2)
            _lines(ax, places, np.array(graph["edges"], dtype=int).reshape(-1, 2))
            ax.scatter(places[:, 0], places[:, 1], s=14, color=COLOURS[0], zorder=3)
            ax.set_title(
                f"{label(row['name'], 14)} ({label(graph['name'], 10)})", fontsize=8.5, color=INK
            )
            ax.margins(0.1)
    words = "A row a class, from small graphs to large ones."
    return Markup(to_svg(figure, f"Drawings of graphs. {words}", "gallery")), words


def _axes(rows: int, columns: int, side: float) -> tuple[Any, Any]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(side * columns, side * rows), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False)
    for ax in axes.ravel():
        ax.patch.set_alpha(0)
    return figure, axes
