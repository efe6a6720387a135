"""A figure of several panels, in the house style."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from castalia.utils.figure_style import dress

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["panels", "plain_ticks"]


def panels(columns: int, size: tuple[float, float], rows: int = 1) -> tuple[Figure, list[Axes]]:
    """Return a figure and its axes, row by row."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    axes = list(figure.subplots(rows, columns, squeeze=False).ravel())
    for ax in axes:
        dress(ax)
    return figure, axes


def plain_ticks(axis: Any, values: Sequence[float]) -> None:
    """Write the ticks of a logarithmic axis as they are said."""
    axis.set_ticks(list(values), [f"{value:g}" for value in values])
    axis.set_ticks([], minor=True)
