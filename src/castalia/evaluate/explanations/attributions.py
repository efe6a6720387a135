"""A prediction divided among the columns of its row."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from castalia.errors import InvalidParameter
from castalia.utils.figure_style import COLOURS, INK, label, start

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Attributions"]


@dataclass
class Attributions:
    """How far each column moves the output for single rows away from the background's mean.

    The values of a row add up to its output minus the mean output of the background.

    Parameters
    ----------
    columns
        Names as in the table, or of groups, P of them.
    values
        One number a row and column, (N, P).
    intervals
        Bounds of each, (N, P, 2); equal to the values where these are exact.
    outputs
        What the model says about each row, (N,).
    base
        Mean output of the background for each row's class, (N,).
    cells
        The rows' own values, (N, P).
    names
        Class whose probability is divided, for each row; empty words for a regression.
    method
        ``"Shapley"`` or ``"integrated gradients"``.
    gap
        Largest difference between the sum of a row's values and what they divide.

    Attributes
    ----------
    ax_, figure_
        What was drawn on.

    See Also
    --------
    castalia.evaluate.shapley_values : for any model.
    castalia.evaluate.integrated_gradients : for networks.

    Examples
    --------
    >>> one = np.array([[0.5, -0.1]])
    >>> cells = np.array([["red", 3]], dtype=object)
    >>> shown = Attributions(
    ...     ["colour", "size"], one, one[:, :, None].repeat(2, 2), np.array([0.9]),
    ...     np.array([0.5]), cells, ["yes"], "Shapley",
    ... )
    >>> shown.plot().ranked(0)
    [('colour', 'red', 0.5, 0.5, 0.5), ('size', 3, -0.1, -0.1, -0.1)]
    """

    columns: list[str]
    values: np.ndarray
    intervals: np.ndarray
    outputs: np.ndarray
    base: np.ndarray
    cells: np.ndarray
    names: list[Any]
    method: str
    gap: float = 0.0
    ax_: Axes = field(init=False, repr=False)
    figure_: Figure = field(init=False, repr=False)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def exact(self) -> bool:
        """Whether the values have no error from sampling."""
        return bool((self.intervals == self.values[:, :, None]).all())

    def ranked(self, row: int = 0) -> list[tuple[str, Any, float, float, float]]:
        """Return column, cell, value, lower and upper bound, the largest effect first."""
        order = np.argsort(-np.abs(self.values[row]), kind="stable")
        return [
            (self.columns[i], self.cells[row, i], float(self.values[row, i]), *bounds)
            for i in order
            for bounds in [(float(self.intervals[row, i, 0]), float(self.intervals[row, i, 1]))]
        ]

    def plot(self, ax: Axes | None = None, row: int = 0, most: int = 12) -> Attributions:
        """Draw the columns that move the output of one row most."""
        if not 0 <= row < len(self):
            raise InvalidParameter(
                f"Attributions.plot: `row` must be between 0 and {len(self) - 1}; got {row!r}."
            )
        shown = self.ranked(row)[:most]
        self.ax_, self.figure_ = start(ax, (5.6, 1.2 + 0.32 * len(shown)), grid="x")
        place = np.arange(len(shown))
        values = np.array([value for _, _, value, _, _ in shown])
        colours = np.where(values >= 0, COLOURS[0], COLOURS[1])
        self.ax_.barh(place, values, color=colours, height=0.6, alpha=0.8)
        if not self.exact:
            bounds = np.array([each[3:] for each in shown]).T
            self.ax_.hlines(place, *bounds, color=INK, lw=1.6)
        self.ax_.axvline(0, color=INK, lw=0.8)
        words = [f"{label(name, 24)} = {label(_cell(cell), 16)}" for name, cell, *_ in shown]
        self.ax_.set_yticks(place, words)
        self.ax_.tick_params(axis="y", labelcolor=INK, length=0)
        self.ax_.invert_yaxis()
        self.ax_.set(xlabel=f"moves {self._what(row)} by", title=self._sum(row))
        return self

    def _what(self, row: int) -> str:
        name = self.names[row]
        return "the prediction" if name == "" else f"the probability of {label(name, 18)}"

    def _sum(self, row: int) -> str:
        return f"{self.base[row]:.4g} on average, {self.outputs[row]:.4g} here"


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
