"""One quiet look for every figure, on light and on dark pages.

Backgrounds are transparent, text has a middle tone, and colours keep a contrast of 3 to 1 with
white and with near-black. In SVG the text colour becomes ``currentColor``, so it follows the page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from castalia.utils.text import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

__all__ = [
    "COLOURS",
    "INK",
    "MUTED",
    "along_depth",
    "by_depth",
    "caption",
    "dress",
    "heat",
    "label",
    "log_scale",
    "signed",
    "start",
    "whole_ticks",
]

INK = "#74787e"
MUTED = "#8f949b"
COLOURS = (
    "#3b7dd8",
    "#d0701a",
    "#2f9463",
    "#a060c8",
    "#c94f6d",
    "#1f93a8",
    "#9c7a1c",
    "#7a7f87",
)


def label(text: Any, width: int = 24) -> str:
    r"""Make any text safe and short enough for a figure.

    Dollar signs are escaped so that a class called ``$x^$`` is not read as mathematics.

    >>> label("  a\nb $5 ")
    'a b \\$5'
    """
    words = " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())
    return shorten(words, width).replace("$", r"\$")


def start(ax: Axes | None, size: tuple[float, float], grid: str = "both") -> tuple[Axes, Figure]:
    """Return the axes to draw on: the caller's, or fresh ones outside pyplot's global state."""
    if ax is not None:
        return ax, ax.figure  # type: ignore[return-value]
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    figure.patch.set_alpha(0)
    fresh = figure.add_subplot()
    dress(fresh, grid)
    return fresh, figure


def dress(ax: Axes, grid: str = "both") -> None:
    """Give fresh axes the house style: two thin spines, faint grid, small text."""
    ax.patch.set_alpha(0)
    for side, spine in ax.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(INK)
        spine.set_alpha(0.5)
        spine.set_linewidth(0.8)
    ax.tick_params(colors=INK, labelcolor=INK, labelsize=9, width=0.8, length=3)
    ax.xaxis.label.set(color=INK, size=9.5)
    ax.yaxis.label.set(color=INK, size=9.5)
    ax.title.set(color=INK, size=10.5)
    ax.set_axisbelow(True)
    if grid in ("both", "x", "y"):
        ax.grid(axis=grid, color=INK, alpha=0.18, linewidth=0.7)  # type: ignore[arg-type]


def caption(ax: Axes, across: int = 3) -> None:
    """Add a frameless legend above the axes, where it cannot cover what is drawn."""
    ax.legend(
        frameon=False,
        fontsize=9,
        labelcolor=INK,
        handlelength=1.4,
        columnspacing=1.6,
        loc="lower left",
        bbox_to_anchor=(-0.01, 0.99),
        ncols=across,
        borderaxespad=0,
    )


def whole_ticks(axis: Axis, most: int = 9) -> None:
    """Put ticks at whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(most, integer=True))


def log_scale(ax: Axes) -> None:
    """Give the vertical axis a log scale with ticks at whole powers of ten, not too many."""
    from matplotlib.ticker import LogLocator, NullLocator

    ax.set_yscale("log")
    ax.yaxis.set_major_locator(LogLocator(numticks=8))
    ax.yaxis.set_minor_locator(NullLocator())


def along_depth() -> Colormap:
    """Return colours from blue over violet and rose to orange."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("depth", [COLOURS[i] for i in (0, 3, 4, 1)])


def by_depth(count: int) -> list[Any]:
    """Return a colour for each layer, blue at the first to orange at the last."""
    colours = along_depth()
    return [colours(i / max(count - 1, 1)) for i in range(count)]


def heat() -> Colormap:
    """Return colours for 0 to the largest value: from the page's own colour to full blue."""
    return _fading("heat", [(COLOURS[0], 0.06), (COLOURS[0], 1.0)])


def signed() -> Colormap:
    """Return colours for -largest to largest: orange, the page's own colour at 0, blue."""
    return _fading("signed", [(COLOURS[1], 1.0), (COLOURS[7], 0.05), (COLOURS[0], 1.0)])


def _fading(name: str, stops: list[tuple[str, float]]) -> Colormap:
    from matplotlib.colors import LinearSegmentedColormap, to_rgba

    return LinearSegmentedColormap.from_list(name, [to_rgba(*stop) for stop in stops])
