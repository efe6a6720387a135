"""Partial dependence: what a model says on average when one column is set to each of its values.

Reference: 2001, Friedman, Greedy function approximation, section 8; 2015, Goldstein, Kapelner,
Bleich, Pitkin, Peeking inside the black box (individual conditional expectation), arXiv 1309.6392.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from castalia.evaluate.explanations.column_table import ColumnTable, column_place
from castalia.evaluate.explanations.model_outputs import ModelOutputs, drawn_rows
from castalia.utils.figure_style import COLOURS, INK, MUTED, label, start

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["PartialDependence"]

LINES = 60  # single rows drawn


@dataclass
class PartialDependence:
    """A model's output over the values of one column, for single rows and on average.

    The lines of single rows (ICE) run side by side where the column acts alone; where they cross,
    its effect depends on other columns. Values are set whatever the other columns say, so rows
    that cannot exist are among them when columns are correlated.

    Parameters
    ----------
    column
        Name of the column.
    grid
        Its values, G of them: in order, or the most frequent categories first.
    lines
        Output for each row at each value, (N, G).
    output
        The class whose probability it is; empty for a regression.
    ordered
        Whether values are numbers or dates, so that lines may join them.

    Attributes
    ----------
    ax_, figure_
        What was drawn on.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> X = np.array([[0.0, 5.0], [1.0, 6.0], [2.0, 9.0]])
    >>> model = LinearRegression().fit(X, 4 * X[:, 0])
    >>> PartialDependence.from_estimator(model, X, "x0").mean.round(6).tolist()
    [0.0, 4.0, 8.0]
    """

    column: str
    grid: np.ndarray
    lines: np.ndarray
    output: Any = ""
    ordered: bool = True
    ax_: Axes = field(init=False, repr=False)
    figure_: Figure = field(init=False, repr=False)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        column: str | int,
        *,
        output: Any = None,
        points: int = 20,
        most: int = 200,
        random_state: int = 0,
    ) -> PartialDependence:
        """Set the column of every row to each of its values and ask the model.

        Parameters
        ----------
        estimator
            Anything fitted that predicts.
        X
            Rows; the values of the column are taken from them.
        column
            Name, or number, of the column.
        output
            Class whose probability is shown; None: the one that the column changes most.
        points
            Values at most: quantiles of numbers and dates, the most frequent categories.
        most
            Rows used at most; they are drawn at random.
        random_state
            Seed of that draw.
        """
        table, outputs = ColumnTable(X), ModelOutputs(estimator)
        place = column_place(table, column, "PartialDependence")
        values = table.values(place)
        holders, ordered = _grid(values, points)
        kept = drawn_rows(len(table), most, random_state)
        rows = np.repeat(kept[:, None], len(table.names), axis=1)  # (N, P)
        asked = np.repeat(rows, len(holders), axis=0)  # (N G, P)
        asked[:, place] = np.tile(holders, len(kept))
        found = outputs.of(table, asked).reshape(len(kept), len(holders), -1)
        chosen = outputs.place(output, "PartialDependence")
        if chosen is None:
            chosen = int(np.ptp(found.mean(axis=0), axis=0)[: len(outputs.names)].argmax())
        name = outputs.names[chosen]
        return cls(table.names[place], values[holders], found[:, :, chosen], name, ordered)

    @property
    def mean(self) -> np.ndarray:
        """Mean over the rows, (G,)."""
        return np.asarray(self.lines.mean(axis=0))

    @property
    def interval(self) -> np.ndarray:
        """Bounds of 95 % around the mean, from the spread of the rows, (G, 2)."""
        error = self.lines.std(axis=0, ddof=1) / np.sqrt(len(self.lines))
        return np.column_stack([self.mean - 1.96 * error, self.mean + 1.96 * error])

    def plot(self, ax: Axes | None = None) -> PartialDependence:
        """Draw single rows in grey, and their mean with its interval."""
        self.ax_, self.figure_ = start(ax, (4.7, 3.3))
        x: Any = self.grid if self.ordered else np.arange(len(self.grid))
        some = np.linspace(0, len(self.lines) - 1, min(LINES, len(self.lines))).astype(int)
        style: dict[str, Any] = {"color": MUTED, "alpha": 0.3, "lw": 0.8}
        if self.ordered:
            self.ax_.plot(x, self.lines[some].T, **style)
            self.ax_.fill_between(x, *self.interval.T, color=COLOURS[0], alpha=0.25, lw=0)
            self.ax_.plot(x, self.mean, color=COLOURS[0], lw=2)
        else:
            self.ax_.plot(x, self.lines[some].T, "o", ms=2.5, **style)
            self.ax_.vlines(x, *self.interval.T, color=INK, lw=2)
            self.ax_.plot(x, self.mean, "o", color=COLOURS[0], ms=7)
            self.ax_.set_xticks(x, [label(value, 12) for value in self.grid])
        of = "prediction" if self.output == "" else f"probability of {label(self.output, 18)}"
        self.ax_.set(xlabel=label(self.column, 40), ylabel=of)
        return self


def _grid(values: np.ndarray, points: int) -> tuple[np.ndarray, bool]:
    """Return rows that hold the values to be shown, and whether these have an order."""
    kind = values.dtype.kind
    if kind in "iufM":
        present = np.flatnonzero(values == values)  # neither NaN nor NaT
        held = present[np.argsort(values[present], kind="stable")]
        first = np.unique(values[held], return_index=True)[1]
        if len(first) <= points:
            return held[first], True
        spread = held[np.linspace(0, len(held) - 1, points).round().astype(int)]
        return spread[np.unique(values[spread], return_index=True)[1]], True
    words = np.array(["" if v is None else str(v) for v in values.tolist()])
    _, first, counts = np.unique(words, return_index=True, return_counts=True)
    kept = [i for i in np.argsort(-counts, kind="stable") if words[first[i]]]
    return first[kept[:points]], False
