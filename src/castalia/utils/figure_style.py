"""One quiet look for every figure, on light and on dark pages.

Files that are saved have a white background. Text has a middle tone, and colours keep a contrast of
3 to 1 with white and with near-black: in an SVG for a page the background is left out, and the text
colour becomes ``currentColor``, so that both follow the page.
"""

from __future__ import annotations

from collections.abc import Iterable
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
    "labels",
    "log_across",
    "log_scale",
    "readable_on",
    "signed",
    "start",
    "tint",
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


def labels(texts: Iterable[Any], width: int = 24) -> list[str]:
    """Make several texts short enough for a figure, but no shorter than they differ.

    >>> labels(["block.0.attention.weight", "block.1.attention.weight"], 9)
    ['block.0….weight', 'block.1….weight']
    """
    texts = list(texts)
    different, longest = len(set(map(str, texts))), max((len(str(t)) for t in texts), default=0)
    for wide in range(width, max(longest, width) + 1):
        found = [label(text, wide) for text in texts]
        if len(set(found)) == different:
            break
    return found


def start(ax: Axes | None, size: tuple[float, float], grid: str = "both") -> tuple[Axes, Figure]:
    """Return the axes to draw on: the caller's, or fresh ones outside pyplot's global state."""
    if ax is not None:
        return ax, ax.figure  # type: ignore[return-value]
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
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


def log_across(ax: Axes, x: Any, least: float = 50) -> None:
    """Give the horizontal axis a log scale where the ends of x differ by a factor of ``least``.

    Ticks are plain numbers, at 1, 2 and 5 of a decade where there are few decades.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    low, high = float(min(x)), float(max(x))
    if low <= 0 or high <= least * low:
        return
    ax.set_xscale("log")
    steps = (1.0, 2.0, 5.0) if high < 300 * low else (1.0,)
    ax.xaxis.set_major_locator(LogLocator(subs=steps, numticks=8))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def tint(colour: str, share: float) -> tuple[float, float, float]:
    """Return a colour mixed with white: 0 gives white, 1 the colour."""
    from matplotlib.colors import to_rgb

    red, green, blue = (1 - share * (1 - part) for part in to_rgb(colour))
    return red, green, blue


def readable_on(colour: tuple[float, float, float]) -> str:
    """Return black or white, whichever has the higher contrast with a colour (WCAG 2).

    >>> readable_on((1.0, 1.0, 0.8)), readable_on((0.0, 0.1, 0.4))
    ('black', 'white')
    """
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour
    ]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "black" if (luminance + 0.05) ** 2 > 1.05 * 0.05 else "white"


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
