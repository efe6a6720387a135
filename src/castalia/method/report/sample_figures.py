"""The figures of drawn rows: the distributions of their columns beside those of real ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from castalia.evaluate import to_svg
from castalia.method.report.guarded_figure import Drawing, guarded
from castalia.utils.figure_style import COLOURS, INK, dress, label

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["sample_drawings"]

ACROSS = 3  # columns in a line of the figure


def sample_drawings(found: Mapping[str, Any]) -> list[Drawing]:
    """Draw the distribution of each column, real and drawn."""
    if not found.get("columns"):
        return []
    return [guarded("Distributions", lambda: _distributions(found["columns"]))]


def _distributions(columns: list[dict[str, Any]]) -> tuple[Markup, str]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    down = -(-len(columns) // ACROSS)
    figure = Figure(figsize=(9, 2.1 * down + 0.3), layout="constrained")
    FigureCanvasAgg(figure)
    axes = list(figure.subplots(down, ACROSS, squeeze=False).ravel())
    for ax, column in zip(axes, columns, strict=False):
        dress(ax, grid="y")
        _column(ax, column)
    for ax in axes[len(columns) :]:
        ax.set_visible(False)
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(
        handles, names, loc="outside upper left", ncols=2, frameon=False, labelcolor=INK, fontsize=9
    )
    words = "Shares of real rows (grey) and of drawn ones (blue)."
    alt = f"Distributions of {len(columns)} columns. {words}"
    return Markup(to_svg(figure, alt, "distributions")), words


def _column(ax: Axes, column: Mapping[str, Any]) -> None:
    """Draw bars of categories, or steps over the range of numbers."""
    real, drawn = np.array(column["real"]), np.array(column["drawn"])
    if "words" in column:
        places = np.arange(len(real))
        ax.bar(places - 0.2, real, 0.4, color=INK, alpha=0.45, label="real")
        ax.bar(places + 0.2, drawn, 0.4, color=COLOURS[0], alpha=0.8, label="drawn")
        ax.set_xticks(places, [label(word, 9) for word in column["words"]])
        ax.tick_params(axis="x", labelsize=7.5, rotation=0 if len(real) < 5 else 45)
    else:
        edges = column["edges"]
        ax.stairs(real, edges, fill=True, color=INK, alpha=0.45, label="real")
        ax.stairs(drawn, edges, color=COLOURS[0], lw=1.6, label="drawn")
    gap = column.get("distance")
    ax.set_title(
        f"{label(column['name'])}{'' if gap is None else f': {gap:.2f}'}", color=INK, size=9
    )
    ax.set_ylim(bottom=0)
