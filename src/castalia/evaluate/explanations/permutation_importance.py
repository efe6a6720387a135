"""Permutation importance: how much worse a model answers when one column is shuffled.

Reference: 2001, Breiman, Random forests; 2019, Fisher, Rudin, Dominici, All models are wrong, but
many are useful, arXiv 1801.01489.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.inspection import permutation_importance

from castalia.base.input_checks import split_target, take_rows
from castalia.errors import InvalidData
from castalia.evaluate.explanations.column_table import ColumnTable
from castalia.evaluate.explanations.model_outputs import ModelOutputs, drawn_rows
from castalia.evaluate.metrics import METRICS
from castalia.evaluate.sums import sums_of
from castalia.utils.figure_style import COLOURS, INK, MUTED, label, start

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["PermutationImportance"]

LOSSES = ("mae", "mse", "rmse")  # less is better

Resampled = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass
class PermutationImportance:
    """Loss of score when the values of one column are shuffled among the rows.

    A column that the model does not use has importance 0. Columns that say the same share what
    they are worth: shuffling one leaves the other; give them as one of ``groups`` to see both.

    Parameters
    ----------
    columns
        Names as in the table, or of groups, P of them, the most important first.
    values
        Mean loss of score over repeats, (P,).
    intervals
        Bounds over resampled rows and repeats, (P, 2).
    metric
        What was scored.
    score
        The score with all columns as they are.
    level
        Probability mass between the bounds.

    Attributes
    ----------
    ax_, figure_
        What was drawn on.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> model = LinearRegression().fit(X, 3 * X[:, 1])
    >>> found = PermutationImportance.from_estimator(model, X, 3 * X[:, 1])
    >>> found.columns, round(float(found.values[1]), 3)
    (['x1', 'x0'], 0.0)
    """

    columns: list[str]
    values: np.ndarray
    intervals: np.ndarray
    metric: str
    score: float
    level: float = 0.95
    ax_: Axes = field(init=False, repr=False)
    figure_: Figure = field(init=False, repr=False)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        metric: Any = None,
        groups: Mapping[str, Sequence[str]] | None = None,
        repeats: int = 10,
        most: int = 5_000,
        level: float = 0.95,
        rounds: int = 200,
        random_state: int = 0,
    ) -> PermutationImportance:
        """Shuffle each column of test rows and score the answers, with scikit-learn's function.

        Parameters
        ----------
        estimator
            Anything fitted that predicts.
        X, y
            Rows it has not learnt from, and their targets; y may stand in a ``Dataset``.
        metric
            A name (``"accuracy"``, ``"balanced_accuracy"``, ``"r2"``, ``"mse"``, ``"rmse"``,
            ``"mae"``) or a function of ``(y_true, prediction)`` where more is better. None:
            accuracy, or R².
        groups
            Columns that are shuffled together, by the name of their group.
        repeats
            How often each column is shuffled.
        most
            Rows used at most; they are drawn at random.
        level
            Probability mass between the bounds.
        rounds
            Resamples that the bounds come from.
        random_state
            Seed of the shuffles and of the resamples.
        """
        X, y = split_target(X, y)
        y = np.asarray(y)
        if len(X) != len(y):
            raise InvalidData(
                f"PermutationImportance: X and y must have the same number of rows; got {len(X):,} "
                f"and {len(y):,}."
            )
        kept = drawn_rows(len(y), most, random_state)
        if len(kept) < len(y):
            X, y = take_rows(X, kept), y[kept]
        table = ColumnTable(X, groups)
        metric = metric or ("accuracy" if ModelOutputs(estimator).classifies else "r2")
        scored = _scorer(estimator, table, metric, _counts(len(y), rounds, random_state))
        rows = np.repeat(np.arange(len(y))[:, None], len(table.names), axis=1)
        found = permutation_importance(
            estimator, rows, y, scoring=scored, n_repeats=repeats, random_state=random_state
        )
        sign = -1.0 if isinstance(metric, str) and metric in LOSSES else 1.0
        drops = sign * np.stack([bunch.importances for bunch in found.values()])  # (1 + R, P, S)
        return cls._ordered(table.names, drops, metric, _score(estimator, X, y, metric), level)

    @classmethod
    def _ordered(
        cls, names: list[str], drops: np.ndarray, metric: Any, score: float, level: float
    ) -> PermutationImportance:
        values, draws = drops[0].mean(axis=1), _over_repeats(drops[1:])
        edges = [100 * (1 - level) / 2, 100 * (1 + level) / 2]
        low, high = np.nanpercentile(draws, edges, axis=0)
        order = np.argsort(-values, kind="stable")
        bounds = np.column_stack([low, high])[order]
        word = metric if isinstance(metric, str) else getattr(metric, "__name__", "score")
        return cls([names[i] for i in order], values[order], bounds, word, score, level)

    def plot(self, ax: Axes | None = None, most: int = 15) -> PermutationImportance:
        """Draw the most important columns, each with its interval."""
        shown = min(most, len(self.columns))
        self.ax_, self.figure_ = start(ax, (5.2, 0.9 + 0.32 * shown), grid="x")
        place = np.arange(shown)
        clear = self.intervals[:shown, 0] > 0
        colours = np.where(clear, COLOURS[0], MUTED)
        self.ax_.barh(place, self.values[:shown], color=colours, height=0.6, alpha=0.75)
        self.ax_.hlines(place, *self.intervals[:shown].T, color=INK, lw=1.6)
        self.ax_.axvline(0, color=INK, lw=0.8)
        self.ax_.set_yticks(place, [label(name, 28) for name in self.columns[:shown]])
        self.ax_.tick_params(axis="y", labelcolor=INK, length=0)
        self.ax_.invert_yaxis()
        name = METRICS[self.metric].label if self.metric in METRICS else self.metric
        name = name.lower() if name.istitle() and len(name) > 2 else name  # not R²
        self.ax_.set(xlabel=f"loss of {name} when shuffled")
        return self


def _counts(rows: int, rounds: int, random_state: int) -> np.ndarray:
    """Return how often each row stands in all rows, and in each resample, (1 + R, N)."""
    drawn = np.random.default_rng(random_state).multinomial(rows, np.full(rows, 1 / rows), rounds)
    return np.concatenate([np.ones((1, rows), dtype=drawn.dtype), drawn])


def _scorer(estimator: Any, table: ColumnTable, metric: Any, counts: np.ndarray) -> Any:
    """Return what scikit-learn calls: a score for all rows and for each resample of them."""
    resampled = _resampled(metric, counts)

    def scored(_: Any, rows: np.ndarray, y: np.ndarray) -> dict[str, float]:
        found = resampled(y, np.asarray(estimator.predict(table.mixed(rows))))
        return {str(i): float(value) for i, value in enumerate(found)}

    return scored


def _resampled(metric: Any, counts: np.ndarray) -> Resampled:
    sums = sums_of(metric, "PermutationImportance")
    if sums is not None:
        return lambda y, said: sums.finish(counts @ sums.parts(y, said))
    drawn = [np.repeat(np.arange(counts.shape[1]), row) for row in counts]
    return lambda y, said: np.array([metric(y[rows], said[rows]) for rows in drawn])


def _score(estimator: Any, X: Any, y: np.ndarray, metric: Any) -> float:
    whole = np.ones((1, len(y)), dtype=int)
    return float(_resampled(metric, whole)(y, np.asarray(estimator.predict(X)))[0])


def _over_repeats(drops: np.ndarray) -> np.ndarray:  # (R, P, S)
    """Return a mean over repeats drawn with replacement for each resample of rows, (R, P)."""
    repeats = drops.shape[2]
    drawn = np.random.default_rng(repeats).integers(repeats, size=(len(drops), 1, repeats))
    return np.asarray(np.take_along_axis(drops, drawn, axis=2).mean(axis=2))
