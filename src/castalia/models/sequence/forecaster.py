"""The task of forecasting: the next steps of a series, with intervals.

Shapes: S steps of a series, C channels, K channels forecast, N windows, L context, H horizon.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np
from torch import Tensor, nn

from castalia.base import Estimator, Interval, NoTarget, OneOf
from castalia.data.adapter_base import Reads
from castalia.data.sequences import Sequences, SeriesAdapter, SeriesWindows
from castalia.errors import InvalidData, InvalidParameter
from castalia.models.sequence.recurrent_parameters import CLIPPED, ReadsSequences
from castalia.models.sequence.value_outputs import OUTPUTS, ValueOutput
from castalia.nets.sequence import LEVELS, Forecast, ForecastNetwork
from castalia.objectives import ForecastLoss
from castalia.protocols import Batch, Spec, Stage
from castalia.train import Training

__all__ = ["Forecaster", "seasonal_errors"]


class ForecastCodec(NoTarget):
    """No y: what is forecast is in the series. Learns ``spread_`` from the validation windows."""

    judges = True

    def check(self, est: Any, adapter: Any, X: Any, y: Any) -> np.ndarray:
        """Refuse what is no count where counts are forecast, and return zeros."""
        if est.output == "poisson":
            low = min(float(np.nanmin(each)) for each in X.series)
            if low < 0:
                raise InvalidData(
                    f"{type(est).__name__}: series must hold counts of at least 0 for the output "
                    f"'poisson'; got {low:g}. Use 'gaussian' instead."
                )
        return super().check(est, adapter, X, y)

    def truth(self, batch: Batch) -> Tensor:
        """Return the steps that followed."""
        future: Tensor = batch.x[1]
        return future

    def conclude(self, est: Any, outputs: Any, targets: Any) -> None:
        """Keep how far the validation windows were missed, by step."""
        est.spread_ = None
        if outputs is None or est.output != "mean":
            return
        missed = outputs.values[..., 0] * outputs.scale + outputs.shift - targets
        found = np.nanquantile(missed.abs().double().numpy(), np.linspace(0, 1, 101), axis=0)
        est.spread_ = found * np.array(est.spec_.extra["deviation"])  # (101, H, K)


@dataclass(kw_only=True, eq=False, repr=False)
class Forecaster(ReadsSequences, Estimator):
    """Base of networks that forecast; a subclass gives ``_body``.

    Parameters
    ----------
    horizon
        Steps to forecast.
    context
        Steps of the past that a forecast is made from.
    target
        Channels to forecast, by name or number; None: all. The others are read only.
    output
        ``"mean"``, ``"quantile"``, or a likelihood: ``"gaussian"``, ``"laplace"``, ``"poisson"``,
        ``"mixture"``.
    level
        What a window is seen relative to: its ``"last"`` step, the mean and deviation of the
        ``"window"``, or ``"none"``.
    shared
        Whether one network forecasts every channel from its own past, instead of all from all.
    stride
        Steps from one training window to the next.
    season
        Steps of the cycle that ``score`` compares with; 1: the last value.
    missing
        What to do about NaN and infinity: ``"error"``, ``"forward"`` or ``"mean"``.
    """

    adapter: ClassVar[Any] = Reads(
        SeriesAdapter, "context", "horizon", "stride", "target", "missing"
    )
    codec: ClassVar[Any] = ForecastCodec()
    usual_training: ClassVar[Training] = CLIPPED

    horizon: Annotated[int, Interval(1, whole=True)] = 24
    context: Annotated[int, Interval(1, whole=True)] = 96
    target: Any = None
    output: Annotated[str, OneOf(*OUTPUTS)] = "mean"
    level: Annotated[str, OneOf(*LEVELS)] = "last"
    shared: Annotated[bool, OneOf(True, False)] = False
    stride: Annotated[int, Interval(1, whole=True)] = 1
    season: Annotated[int, Interval(1, whole=True)] = 1
    missing: Annotated[str, OneOf("error", "forward", "mean")] = "error"

    def _body(self, spec: Spec) -> Callable[[int, int], nn.Module]:
        """Return what makes a body from the channels it reads and the numbers it gives."""
        raise NotImplementedError

    def _network(self, spec: Spec) -> nn.Module:
        mean, deviation = np.array(spec.extra["mean"]), np.array(spec.extra["deviation"])
        units = None
        if self.output == "poisson":  # counts keep their units
            units = ((-mean / deviation).tolist(), (1 / deviation).tolist())
        return ForecastNetwork(
            self._body(spec),
            spec.inputs,
            spec.extra["targets"],
            self.horizon,
            values=self._loss().values(),
            level=self.level,
            shared=self.shared,
            units=units,
        )

    def _objective(self, spec: Spec) -> ForecastLoss | Sequence[Stage]:
        return self._loss()

    def _loss(self) -> ForecastLoss:
        return ValueOutput(self.output).loss()

    # -- forecasts ------------------------------------------------------------------------

    def predict(self, X: Any) -> np.ndarray:
        """Return the steps after the end of each series: (H, K) of one, (n, H, K) of several."""
        windows, alone = self._ends(X)
        found = self.predict_windows(windows)
        return found[0] if alone else found

    def predict_interval(self, X: Any, coverage: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Return bounds between which each step lies with a probability, shaped as ``predict``'s.

        Of the output ``"mean"``, by how far the validation windows were missed at each step; of
        others, by the forecast distribution.
        """
        if not 0 < coverage < 1:
            raise InvalidParameter(
                f"predict_interval: `coverage` must be above 0 and below 1; got {coverage!r}."
            )
        windows, alone = self._ends(X)
        low, high = self.interval_windows(windows, coverage)
        return (low[0], high[0]) if alone else (low, high)

    def predict_windows(self, X: Any) -> np.ndarray:
        """Return a forecast for every window of series, (N, H, K)."""
        return self._in_units(X, ValueOutput(self.output).middle)

    def interval_windows(self, X: Any, coverage: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Return bounds for every window of series, (N, H, K) each."""
        if self.output == "mean":
            if self.spread_ is None:
                raise InvalidData(
                    f"{type(self).__name__}: intervals around a mean need validation windows; "
                    "there were none. Give more steps, or set output='quantile'."
                )
            middle = self.predict_windows(X)
            levels = np.linspace(0, 1, len(self.spread_))
            reach = np.apply_along_axis(lambda q: np.interp(coverage, levels, q), 0, self.spread_)
            return middle - reach, middle + reach
        read = ValueOutput(self.output).quantile
        low, high = (partial(read, level=(1 + c) / 2) for c in (-coverage, coverage))
        bounds = self._in_units(X, low), self._in_units(X, high)
        if self.output == "poisson":  # counts are whole
            return np.round(bounds[0]), np.round(bounds[1])
        return bounds

    def score(self, X: Any, y: Any = None) -> float:
        """Return the skill: 1 - MAE / MAE of repeating the last season, over all windows of X."""
        windows = self._checked(X)
        wanted = windows.future()[..., self.adapter_.targets]
        missed = np.abs(wanted - self.predict_windows(windows))
        usual = np.abs(wanted - self._seasonal(windows))
        return float(1 - np.nansum(missed) / max(float(np.nansum(usual)), 1e-300))

    def _seasonal(self, windows: SeriesWindows) -> np.ndarray:
        past = windows.past()[..., self.adapter_.targets]
        season = min(self.season, self.context)
        place = self.context - season + np.arange(self.horizon) % season
        return past[:, place]

    def _ends(self, X: Any) -> tuple[SeriesWindows, bool]:
        """Return the window at the end of each series, without a future, and whether X was one."""
        name = type(self).__name__
        if not hasattr(self, "adapter_"):
            self._checked(X)  # says that it is not fitted
        series, alone = self.adapter_.check_series(X, name)
        short = series.lengths < self.context
        if short.any():
            raise InvalidData(
                f"{name}: a series must have {self.context} steps at least, the context of the "
                f"model, to forecast from; series {int(short.argmax())} has "
                f"{int(series.lengths[short][0])}."
            )
        ends = [each[-self.context :] for each in series]
        unknown = np.full((self.horizon, ends[0].shape[1]), np.nan)
        whole = Sequences([np.concatenate([end, unknown]) for end in ends])
        place = np.arange(len(ends))
        return SeriesWindows(whole, place, 0 * place, self.context, self.horizon), alone

    def _in_units(self, X: Any, read: Callable[[Tensor], Tensor]) -> np.ndarray:
        """Return what is read off the network's numbers, in the units of the series."""
        windows = X if isinstance(X, SeriesWindows) else self._checked(X)
        mean, deviation = (np.array(self.spec_.extra[k]) for k in ("mean", "deviation"))
        found = []
        for outputs in self._through(windows):
            one = Forecast(*outputs)
            values = read(one.values) * one.scale + one.shift  # (B, H, K)
            found.append(values.double().numpy() * deviation + mean)
        return np.concatenate(found)


def seasonal_errors(series: np.ndarray, season: int) -> np.ndarray:
    """Return the mean absolute error of repeating the last season inside a series, (C,).

    It is what MASE divides by (2006, Hyndman, Koehler, International Journal of Forecasting 22).

    >>> seasonal_errors(np.array([[0.0], [1.0], [3.0]]), 1)
    array([1.5])
    """
    season = season if len(series) > season else 1
    found: np.ndarray = np.nanmean(np.abs(series[season:] - series[:-season]), axis=0)
    return np.where(found > 0, found, 1.0)
