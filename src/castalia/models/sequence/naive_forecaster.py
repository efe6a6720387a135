"""Forecasts that need no learning: the ones to beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from castalia.base import DirectEstimator, Interval, OneOf
from castalia.data.sequences import Sequences, SeriesWindows
from castalia.data.sequences.series_adapter import as_series, covered, series_windows
from castalia.errors import InvalidData
from castalia.models.sequence.recurrent_parameters import ReadsSequences

__all__ = ["NaiveForecaster"]

MOST = 2000  # windows that the spread is taken from


@dataclass(kw_only=True, eq=False, repr=False)
class NaiveForecaster(ReadsSequences, DirectEstimator):
    """Forecasts by repeating: the last value, the last season, or the last value with a drift.

    A forecaster that does not beat these has learnt nothing. MASE divides by the errors that the
    second makes inside the series.

    Parameters
    ----------
    method
        ``"seasonal"`` repeats the last season, ``"last"`` the last value, ``"drift"`` goes on from
        it along the line from the first value.
    season
        Steps of a season.
    horizon
        Steps to forecast.
    device, random_state
        Not used.

    Attributes
    ----------
    channels_ : int
        Channels of a series, all of which are forecast.
    spread_ : ndarray (101, H, C)
        Percentiles of how far the known steps were missed, by step.

    Shapes
    ------
    X: (S,), (S, C) or a frame is one series; a list of such arrays, or (n, S, C), several.
    ``predict`` gives (H, C), or (n, H, C) of several.

    Notes
    -----
    Where a series is shorter than a season, its last value is repeated.

    References
    ----------
    2021, Hyndman, Athanasopoulos, Forecasting: principles and practice, section 5.2.

    See Also
    --------
    WindowRegressor : a linear map of the last steps.

    Examples
    --------
    >>> NaiveForecaster(season=3, horizon=4).fit([1.0, 2, 3, 4, 5, 6]).predict([1.0, 2, 3, 4, 5, 6])
    array([[4.],
           [5.],
           [6.],
           [4.]])
    """

    method: Annotated[str, OneOf("seasonal", "last", "drift")] = "seasonal"
    season: Annotated[int, Interval(1, whole=True)] = 1
    horizon: Annotated[int, Interval(1, whole=True)] = 1

    def _matrix(self, X: Any, *, reset: bool = False) -> Any:
        """Return X as series, of as many channels as in ``fit``."""
        name = type(self).__name__
        if isinstance(X, SeriesWindows):
            return Sequences(covered(X))
        series, alone = as_series(X, name)
        if not reset and series[0].shape[1] != self.channels_:
            raise InvalidData(
                f"{name}: series must have {self.channels_} channels, as in fit; got "
                f"{series[0].shape[1]}."
            )
        return series if reset else (series, alone)

    def _solve(self, X: Any, y: Any, sample_weight: np.ndarray | None) -> None:
        self.channels_ = X[0].shape[1]
        past = min(max(self.season, 2), max(1, int(X.lengths.max()) - self.horizon))
        known = X.lengths >= past + self.horizon
        self.spread_ = np.zeros((101, self.horizon, self.channels_))
        if known.any():
            found = series_windows(X.take(np.flatnonzero(known)), past, self.horizon, "fit")
            found = found.take(np.linspace(0, len(found) - 1, min(len(found), MOST)).astype(int))
            missed = np.abs(found.future() - self.predict_windows(found))
            self.spread_ = np.nanquantile(missed, np.linspace(0, 1, 101), axis=0)

    def predict(self, X: Any) -> np.ndarray:
        """Return the steps after the end of each series: (H, C) of one, (n, H, C) of several."""
        check_is_fitted(self, "channels_")
        series, alone = self._matrix(X)
        found = np.stack([self._ahead(each[None])[0] for each in series])
        return found[0] if alone else found

    def predict_windows(self, X: SeriesWindows) -> np.ndarray:
        """Return a forecast for every window, (N, H, C)."""
        return self._ahead(X.past())

    def predict_interval(self, X: Any, coverage: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Return bounds by how far the known steps were missed, shaped as ``predict``'s."""
        middle = self.predict(X)
        levels = np.linspace(0, 1, len(self.spread_))
        reach = np.apply_along_axis(lambda q: np.interp(coverage, levels, q), 0, self.spread_)
        return middle - reach, middle + reach

    def score(self, X: Any, y: Any = None) -> float:
        """Return the skill: 1 - MAE / MAE of repeating the last value, over all windows of X."""
        series, _ = self._matrix(X)
        found = series_windows(series, max(self.season, 2), self.horizon, type(self).__name__)
        wanted, last = found.future(), found.past()[:, -1:]
        missed = np.abs(wanted - self.predict_windows(found)).sum()
        return float(1 - missed / max(float(np.abs(wanted - last).sum()), 1e-300))

    def _ahead(self, past: np.ndarray) -> np.ndarray:  # (N, L, C)
        """Return the next steps, (N, H, C)."""
        steps, length = np.arange(self.horizon), past.shape[1]
        if self.method == "drift" and length > 1:
            slope = (past[:, -1:] - past[:, :1]) / (length - 1)
            return past[:, -1:] + (steps + 1)[:, None] * slope
        season = self.season if self.method == "seasonal" and length >= self.season else 1
        return past[:, length - season + steps % season]
