"""Baselines and model on one line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from castalia.errors import InvalidData, ShapeMismatch
from castalia.evaluate.displays.display import Display
from castalia.evaluate.metrics import METRICS
from castalia.utils.figure_style import COLOURS, INK, MUTED, label, labels, start

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ScoreComparison"]


@dataclass
class ScoreComparison(Display):
    """Scores of several models as dots with their intervals, best at the top.

    Parameters
    ----------
    names, values
        One per model, in drawing order from the top.
    intervals
        ``(low, high)`` or None per model.
    highlight
        Names drawn in colour.
    metric
        What was scored.

    Attributes
    ----------
    ax_, figure_
        What was drawn on.

    Examples
    --------
    >>> shown = ScoreComparison.from_scores(
    ...     ["guess", "network"], [0.4, 0.9], [None, (0.85, 0.95)], highlight=["network"]
    ... )
    >>> shown.plot().names
    ['network', 'guess']
    """

    names: list[str]
    values: list[float]
    intervals: list[tuple[float, float] | None]
    highlight: frozenset[str] = frozenset()
    metric: str = "accuracy"

    @classmethod
    def from_scores(
        cls,
        names: Sequence[str],
        values: Sequence[float],
        intervals: Sequence[Any] | None = None,
        highlight: Sequence[str] = (),
        metric: str = "accuracy",
    ) -> ScoreComparison:
        """Build from one score per model; models without a score are left out."""
        ranges = [None] * len(names) if intervals is None else list(intervals)
        if not len(names) == len(values) == len(ranges):
            raise ShapeMismatch(
                f"ScoreComparison: `names`, `values` and `intervals` must be equally long; "
                f"got {len(names)}, {len(values)} and {len(ranges)}."
            )
        known = [i for i, v in enumerate(values) if np.isfinite(v)]
        if not known:
            raise InvalidData("ScoreComparison: at least one score must be finite; got none.")
        higher = METRICS[metric].higher if metric in METRICS else True
        order = sorted(known, key=lambda i: -values[i] if higher else values[i])
        return cls(
            [str(names[i]) for i in order],
            [float(values[i]) for i in order],
            [_bounds(ranges[i]) for i in order],
            frozenset(map(str, highlight)),
            metric,
        )

    def plot(self, ax: Axes | None = None) -> ScoreComparison:
        """Draw one line per model."""
        n = len(self.names)
        self.ax_, self.figure_ = start(ax, (4.7, 0.85 + 0.4 * n), grid="x")
        if ax is None:
            self.ax_.spines["left"].set_visible(False)
        for i, (name, value, bounds) in enumerate(
            zip(self.names, self.values, self.intervals, strict=True)
        ):
            colour = COLOURS[0] if name in self.highlight else MUTED
            if bounds is not None:
                self.ax_.plot(
                    bounds, [i, i], color=colour, lw=2.4, alpha=0.6, solid_capstyle="butt"
                )
            self.ax_.plot([value], [i], "o", color=colour, ms=7)
        self.ax_.set_yticks(range(n), labels(self.names, 24))
        self.ax_.set(ylim=(n - 0.5, -0.5), xlabel=self._title())
        self._emphasise()
        return self

    def _title(self) -> str:
        known = METRICS.get(self.metric)
        if known is None:
            return label(self.metric)
        return f"{known.label} ({'higher' if known.higher else 'lower'} is better)"

    def _emphasise(self) -> None:
        self.ax_.tick_params(axis="y", length=0)
        for text, name in zip(self.ax_.get_yticklabels(), self.names, strict=True):
            text.set(color=INK, fontweight="bold" if name in self.highlight else "normal")


def _bounds(interval: Any) -> tuple[float, float] | None:
    if interval is None:
        return None
    low, high = float(interval[0]), float(interval[1])
    return (low, high) if np.isfinite([low, high]).all() else None
