"""Small plots of a diagnosis's curves, as SVG without text: the page writes the words around them.

A series over steps is a line, a series over layers a row of bars. Numbers that span more than two
powers of ten are drawn on a logarithmic scale. The colours are the page's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from html import escape

from markupsafe import Markup

from castalia.utils.text import number

__all__ = ["Plot", "plot"]

WIDTH, HEIGHT, EDGE = 240.0, 56.0, 3.0
MOST = 240  # points drawn; more would lie closer than a pixel
SPAN = 100.0  # a wider range is drawn by powers of ten

Pairs = Sequence[tuple[str | float, float]]


@dataclass(frozen=True)
class Plot:
    """One drawing and the words around it."""

    title: str
    span: str  # from where to where the numbers go
    ends: tuple[str, str]  # what stands below the two ends
    note: str
    svg: Markup


def plot(name: str, series: Pairs, marked: Collection[str] = ()) -> Plot | None:
    """Draw one series; None when it holds no finite number.

    Parameters
    ----------
    name
        What is drawn.
    series
        Pairs of a place and a number; places are numbers, or the names of layers.
    marked
        Layers to stress.

    Examples
    --------
    >>> drawn = plot("gradient_norm", [("fc1", 1e-6), ("fc2", 1e-3), ("fc3", 1.0)], {"fc1"})
    >>> drawn.title, drawn.span, drawn.ends, drawn.note
    ('gradient norm', '1e-06 to 1', ('fc1', 'fc3'), 'log scale')
    """
    finite = [value for _, value in series if math.isfinite(value)]
    if not finite:
        return None
    by_layer = isinstance(series[0][0], str)
    height, log = _scale(finite, from_zero=by_layer, share="fraction" in name)
    body = _bars(series, height, marked) if by_layer else _line(series, height)
    span = f"{number(min(finite), 3)} to {number(max(finite), 3)}"
    if not by_layer:
        span = f"{number(series[0][1], 3)} → {number(series[-1][1], 3)}"
    title = name.replace("_", " ")
    notes = ["log scale"] * log + _lost(series)
    svg = (
        f'<svg viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(title)}: {escape(span)}">{body}</svg>'
    )
    ends = (_place(series[0][0]), _place(series[-1][0]))
    return Plot(title, span, ends, ", ".join(notes), Markup(svg))


def _scale(
    values: Sequence[float], from_zero: bool, share: bool
) -> tuple[Callable[[float], float], bool]:
    """Return the height of a number in the drawing, and whether powers of ten are even steps."""
    positive = [value for value in values if value > 0]
    log = not share and min(values) >= 0 and bool(positive) and max(values) > SPAN * min(positive)
    read = (lambda value: math.log10(max(value, min(positive)))) if log else float
    low, high = min(map(read, values)), max(map(read, values))
    if from_zero and not log:
        low, high = min(low, 0.0), max(high, 1.0 if share else 0.0)
    elif from_zero:
        low -= 0.08 * (high - low)  # the smallest bar can still be seen
    span = high - low or 1.0
    return lambda value: HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * (read(value) - low) / span, log


def _line(series: Pairs, height: Callable[[float], float]) -> str:
    start, end = float(series[0][0]), float(series[-1][0])
    points, broken = [], []
    for place, value in _thinned(series):
        x = EDGE + (WIDTH - 2 * EDGE) * (float(place) - start) / ((end - start) or 1.0)
        if math.isfinite(value):
            points.append((x, height(value)))
        else:
            broken.append(x)
    drawn = f'<path class="line" d="M{" L".join(f"{x:.1f} {y:.1f}" for x, y in points)}"/>'
    if len(points) == 1:
        drawn = f'<circle class="dot" cx="{points[0][0]:.1f}" cy="{points[0][1]:.1f}" r="2"/>'
    if broken:
        wide = max(WIDTH - broken[0], 1.5)
        drawn += (
            f'<rect class="lost" x="{broken[0]:.1f}" width="{wide:.1f}" height="{HEIGHT:.0f}"/>'
        )
    return drawn


def _thinned(series: Pairs) -> Pairs:
    """Keep the lowest and the highest number of every stretch, so that spikes stay."""
    if len(series) <= MOST:
        return series
    kept: set[int] = {0, len(series) - 1}
    stretch = 2 * len(series) / MOST
    for i in range(MOST // 2):
        piece = range(int(i * stretch), max(int((i + 1) * stretch), int(i * stretch) + 1))
        odd = [k for k in piece if not math.isfinite(series[k][1])]
        even = [k for k in piece if math.isfinite(series[k][1])]
        kept.update(odd[:1])
        if even:
            kept.update((min(even, key=_value(series)), max(even, key=_value(series))))
    return [series[k] for k in sorted(kept)]


def _value(series: Pairs) -> Callable[[int], float]:
    return lambda k: series[k][1]


def _bars(series: Pairs, height: Callable[[float], float], marked: Collection[str]) -> str:
    slot = WIDTH / len(series)
    wide = min(0.8 * slot, 32.0)
    drawn = []
    for i, (layer, value) in enumerate(series):
        odd = not math.isfinite(value)
        top = EDGE if odd else height(value)
        look = "lost" if odd else "bar marked" if layer in marked else "bar"
        drawn.append(
            f'<rect class="{look}" x="{i * slot + (slot - wide) / 2:.1f}" y="{top:.1f}" '
            f'width="{wide:.2f}" height="{max(HEIGHT - top, 1.0):.1f}">'
            f"<title>{escape(str(layer))}: {number(value, 3)}</title></rect>"
        )
    return "".join(drawn)


def _place(where: str | float) -> str:
    return where if isinstance(where, str) else f"step {number(where, 6)}"


def _lost(series: Pairs) -> list[str]:
    """Say where the numbers stop being finite."""
    for where, value in series:
        if not math.isfinite(value):
            return [f"not finite {'in' if isinstance(where, str) else 'from'} {_place(where)}"]
    return []
