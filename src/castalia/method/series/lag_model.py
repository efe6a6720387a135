"""Forecasts by gradient boosting: the last steps of a window as columns.

Everything is relative to the last step, so that a series that wanders is forecast from where it is.
Shapes: N windows, L lags, H horizon.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from castalia.data.sequences import Sequences, SeriesWindows
from castalia.data.sequences.series_adapter import as_series
from castalia.method.classic_model import ClassicModel

__all__ = ["LagModel", "LagWindows", "lag_model"]

MOST_LAGS = 64  # that boosting sees
MOST_ROWS = 40_000  # pairs of window and step that boosting is fitted on


class LagWindows:
    """Windows as rows of numbers, one for each step ahead: lags, the step, the season before it.

    Parameters
    ----------
    context, horizon, season
        Steps of a window, to forecast, and of a season.
    names
        Names of the channels, the target first.
    """

    def __init__(self, context: int, horizon: int, season: int, names: list[str]) -> None:
        self.context, self.horizon, self.season, self.names = context, horizon, season, names

    def fit(self, X: Any) -> LagWindows:
        """Learn nothing."""
        return self

    def encode(self, X: SeriesWindows) -> np.ndarray:
        """Return (N H, columns)."""
        past = X.past()
        level = past[:, -1:]
        lags = (past - level)[:, -min(self.context, MOST_LAGS) :, 0]
        steps = np.arange(self.horizon)
        before = past[:, self.context - self.season + steps % self.season, 0] - level[:, :, 0]
        return np.column_stack(
            [
                np.repeat(lags, self.horizon, axis=0),
                before.ravel(),
                np.tile(steps, len(past)),
            ]
        )

    def state(self) -> dict[str, Any]:
        """Return its settings."""
        return dict(vars(self))

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> LagWindows:
        """Return what `state` was of."""
        return cls(**state)


class LagModel(ClassicModel):
    """A regressor of scikit-learn that forecasts the first channel of series, step by step."""

    spread: np.ndarray | None = None

    def fit(self, X: SeriesWindows, y: Any = None) -> LagModel:
        """Fit on windows; what is forecast is in them."""
        rows = self.features.encode(X)
        wanted = (X.future()[..., 0] - X.past()[:, -1:, 0]).ravel()  # (N H,)
        if len(rows) > MOST_ROWS:
            chosen = np.random.default_rng(0).choice(len(rows), MOST_ROWS, replace=False)
            rows, wanted = rows[chosen], wanted[chosen]
        self.estimator.fit(rows, wanted)
        return self

    def predict_windows(self, X: SeriesWindows) -> np.ndarray:
        """Return a forecast for every window, (N, H, 1)."""
        found = np.asarray(self.estimator.predict(self.features.encode(X)))
        return (found.reshape(len(X), -1) + X.past()[:, -1:, 0])[..., None]

    def predict(self, X: Any) -> np.ndarray:
        """Return the steps after the end of each series, (n, H, 1)."""
        series, _ = as_series(X, "predict")
        return self.predict_windows(last_windows(series, self.features.context, 0))


def last_windows(series: Sequences, context: int, horizon: int) -> SeriesWindows:
    """Return the window at the end of each series."""
    place = np.arange(len(series))
    return SeriesWindows(series, place, series.lengths - context - horizon, context, horizon)


def lag_model(features: LagWindows, rounds: int, seed: int) -> LagModel:
    """Return gradient boosting on lags, not yet fitted."""
    made = HistGradientBoostingRegressor(max_iter=rounds, random_state=seed)
    return LagModel(made, features)
