"""Series to be forecast: one, or one for each group."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from castalia.data.sequences import SeriesWindows, season_of
from castalia.data.sequences.series_adapter import series_windows
from castalia.errors import InvalidData, InvalidParameter
from castalia.method.answer_scores import Answers, answers_of
from castalia.method.fit_plan import NO_TIME, FitPlan
from castalia.method.kinds.kind import Asked, Kind, NewRows, refuse
from castalia.method.series.lag_model import LagModel, LagWindows, lag_model
from castalia.method.series.series_plan import names_series, read_series, table_of
from castalia.method.table_model import built, loop
from castalia.method.task import Task
from castalia.method.train_test_split import Part, RowKeys, make_parts
from castalia.method.verdict import Verdict
from castalia.models.sequence import NaiveForecaster, WindowRegressor
from castalia.models.sequence.forecaster import Forecaster, seasonal_errors
from castalia.train import Training
from castalia.utils.text import listing, plural

__all__ = ["SeriesForecast"]

MANY = 5_000  # windows from which one training takes long enough
COVERAGE = 0.9  # of the intervals shown
NAIVE = ("seasonal", "last", "drift")


class SeriesForecast(Kind):
    """Windows of series: the past of each, and the steps that follow it."""

    catalog = "sequence"
    other = "rnnforecaster"
    tries: ClassVar = {"hidden": ((512,), (64,)), "context": (48, 168)}
    direct = None
    shows_used = True

    def __init__(self, plan: FitPlan) -> None:
        self.plan = plan
        refuse(plan, ("text", "cv"), "series to forecast")
        self.target = str(plan.target)
        when = None if plan.time == NO_TIME else plan.time
        self.series = read_series(table_of(plan), self.target, when, plan.group, plan.drop)
        times = self.series.times
        self.season = int(plan.settings.get("season", season_of(times[0] if times else None)))
        self.horizon = plan.horizon or max(2, self.season)
        self.context = int(plan.settings.get("context", self._usual_context()))
        self.X = self._windows()
        self.task = Task(
            "forecasting",
            f"{plural(self.horizon, 'step')} ahead from {self.context} before",
            self._truth(),
            np.array([]),
            "window",
        )
        self.keys = RowKeys(order=self._origins())
        repeats = 3 if len(self.X) < MANY else 1
        parts, more = make_parts(_Sized(self.X, plan.name), self.task, plan, self.keys, repeats)
        self.parts = [self._purged(part) for part in parts]
        self.notes = [*self.series.notes, *more, *self._choices()]

    def _usual_context(self) -> int:
        """Return two seasons or twice the horizon, as far as the series are long enough."""
        wanted = max(2 * self.season, 2 * self.horizon, 16)
        most = int(np.median(self.series.lengths)) // 3 - self.horizon
        return max(2, min(wanted, most))

    def _windows(self) -> SeriesWindows:
        long = self.series.lengths >= self.context + self.horizon
        if not long.any():
            raise InvalidData(
                f"fit: a series must have {self.context + self.horizon} steps at least, "
                f"{self.context} of the past and {self.horizon} to forecast; the longest has "
                f"{int(self.series.lengths.max())}. Give a shorter --horizon, or --set context=N."
            )
        self.short = [str(name) for name in self.series.ids[~long].tolist()]
        self.series = self.series.take(np.flatnonzero(long))
        return series_windows(self.series, self.context, self.horizon, "fit")

    def _truth(self) -> np.ndarray:
        """Return the future of each window and what MASE divides by, (N, H + 1)."""
        size = 1 - self.plan.test
        scales = [
            seasonal_errors(each[: max(2, int(len(each) * size)), :1], self.season)[0]
            for each in self.series
        ]
        future = self.X.future()[..., 0]
        return np.column_stack([future, np.array(scales)[self.X.number]])

    def _origins(self) -> np.ndarray:
        """Return when each forecast is made, in steps."""
        origin = self.X.start + self.context
        times = self.series.times
        if times is None or len(self.series) == 1:
            return origin.astype(float)
        first = np.array([t[0] for t in times])
        step = np.median(np.diff(times[0]))
        return origin + np.round((first - first.min()) / step).astype(float)[self.X.number]

    def _purged(self, part: Part) -> Part:
        """Leave out windows whose future reaches into the tested time."""
        origin = self._origins()
        first = origin[part.test].min()
        kept = part.train[origin[part.train] + self.horizon <= first]
        if not len(kept):
            raise InvalidData(
                f"fit: there must be steps to train on before those tested; with horizon "
                f"{self.horizon} there are none. Give a shorter --horizon or a smaller --test."
            )
        return replace(part, train=kept)

    def hold_validation(
        self, rows: np.ndarray, share: float
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Cut the latest windows off; no future of theirs is trained on."""
        cut = super().hold_validation(rows, share)
        if cut is None or not len(cut[1]):
            return cut
        origin = self._origins()
        kept = cut[0][origin[cut[0]] + self.horizon <= origin[cut[1]].min()]
        return (kept, cut[1]) if len(kept) else None

    def _choices(self) -> list[str]:
        found = []
        if self.plan.horizon is None:
            found.append(f"{self.horizon} steps are forecast (--horizon for another number).")
        if self.season > 1 and "season" not in self.plan.settings:
            found.append(f"A season of {self.season} steps is taken (--set season=N for another).")
        if self.short:
            found.append(
                f"{plural(len(self.short), 'series')} too short for a window left out: "
                f"{listing(self.short, 'and', 5)}."
            )
        others = self.series.channels[1:]
        if others:
            found.append(
                f"The past of {listing(others, 'and', 6)} is read too, the future of none: it is "
                "not known when a forecast is made."
            )
        tested = np.concatenate([part.test for part in self.parts])
        trained = self.task.y[self.parts[0].train][:, :-1]
        wanted = self.task.y[tested][:, :-1]
        out = float(np.mean((wanted > trained.max()) | (wanted < trained.min())))
        if out > 0.01:
            found.append(f"{100 * out:.0f} % of the tested values are out of the range trained on.")
        if np.ptp(trained) == 0:
            found.append(f"`{self.target}` never changes where it is trained on.")
        return found

    @staticmethod
    def holds(plan: FitPlan) -> bool:
        """Whether a plan asks for a forecast."""
        return names_series(plan)

    def fingerprint(self) -> str:
        """Return a mark of the content."""
        return self.X.fingerprint()

    def facts(self) -> dict[str, Any]:
        """Count series and steps."""
        steps = int(self.series.lengths.sum())
        what = f"{len(self.series):,} series of {steps:,} steps, {plural(len(self), 'window')}"
        return {"source": self.plan.name, "what": what}

    @property
    def baselines(self) -> dict[str, str]:
        """What forecasts are measured by, the seasonal repetition first."""
        return {
            "seasonal": "Seasonal naive" if self.season > 1 else "Last value",
            **({"last": "Last value"} if self.season > 1 else {}),
            "drift": "Drift",
            "linear": "Linear autoregression",
            "boosting": "Gradient boosting on lags",
        }

    def baseline(self, key: str, part: Part) -> tuple[Any, Answers]:
        """Fit a baseline."""
        begin = time.perf_counter()
        train = self.X.take(part.train)
        model = self._baseline(key, self.plan.seed + part.seed).fit(train)
        seconds = time.perf_counter() - begin
        return model, answers_of(model, self.X.take(part.test), self.task, seconds)

    def _baseline(self, key: str, seed: int) -> Any:
        if key in NAIVE:
            return NaiveForecaster(method=key, season=self.season, horizon=self.horizon)
        if key == "linear":
            training = Training(device=self.plan.device, verbose=False, watch=False)
            own = self._window() | {"random_state": seed, "training": training}
            return WindowRegressor(solver="ridge", **own)
        season = self.season if self.season <= self.context else 1
        features = LagWindows(self.context, self.horizon, season, self.series.channels)
        return lag_model(features, self.plan.boosting_rounds, seed)

    def baseline_note(self, key: str) -> str:
        """Say what a baseline does."""
        season = "the last step" if self.season == 1 else f"the last {self.season} steps"
        words = {
            "seasonal": f"{season}, repeated",
            "last": "the last step, repeated",
            "drift": "on along the line from the first step of the window to the last",
            "linear": f"ridge regression on {self.context} lags, its penalty by the latest windows",
            "boosting": "one model for all steps ahead",
        }
        return words[key]

    def usual_model(self) -> str:
        """Return a dense network of the window."""
        return "WindowRegressor"

    def build(self, rows: int, seed: int = 0) -> Any:
        """Return an unfitted forecaster."""
        training = Training(**{**loop(self.plan), "clip": 1.0, "patience": 10})
        own = {
            **self._window(),
            "hidden": 64 if "RNN" in self.system.name or "Temporal" in self.system.name else (256,),
            "epochs": 60,
            "random_state": seed,
            "training": training,
        }
        return built(self.system, own, self.plan)

    def _window(self) -> dict[str, Any]:
        """Return what is forecast from what, as forecasters take it."""
        return {
            "horizon": self.horizon,
            "context": self.context,
            "season": self.season,
            "target": 0,
            "shared": len(self.series.channels) == 1,
            "missing": "forward",
        }

    @property
    def title(self) -> str:
        """Target and table."""
        return f"Forecast of {self.target} from {self.plan.name}"

    def advice(self, verdict: Verdict) -> list[str]:
        """Say what MASE means here, and what few steps suggest."""
        found = [
            "MASE is the error divided by that of repeating the last season inside the series: "
            "below 1 a forecast beats it."
        ]
        if len(self) < 500:
            found.append(
                f"There are only {plural(len(self), 'window')}: more history, or more series of "
                "the kind, change more than settings."
            )
        return found

    def described(self) -> dict[str, Any]:
        """Return spans and steps."""
        facts = {
            "Series": f"{len(self.series):,}, of {int(self.series.lengths.min()):,} to "
            f"{int(self.series.lengths.max()):,} steps",
            "Channels": ", ".join(self.series.channels),
            "Forecast": self.task.why,
        }
        if self.series.times is not None:
            first = min(t[0] for t in self.series.times)
            last = max(t[-1] for t in self.series.times)
            facts["Time"] = f"{_written(first)} to {_written(last)}"
        return {"facts": facts}

    def shown(self, rows: np.ndarray) -> list[dict[str, Any]]:
        """Return the series and time of windows."""
        return [{"row": {"series": str(self.series.ids[self.X.number[row]])}} for row in rows]

    def sections(self, model: Any, tested: np.ndarray, answers: Answers) -> dict[str, Any]:
        """Show the last forecast with its interval, and errors by step and over time."""
        said = answers_of(model, self.X.take(tested), self.task, 0.0).prediction
        wanted, scale = self.task.y[tested][:, :-1], self.task.y[tested][:, -1:]
        missed = np.abs(said - wanted) / scale  # (N, H)
        order = np.argsort(self.keys.order[tested], kind="stable")  # type: ignore[index]
        last = int(order[-1])
        row = int(tested[last])
        reach = np.quantile(np.abs(said - wanted), COVERAGE, axis=0)
        past = self.X.take([row]).past()[0, :, 0]
        blocks = np.array_split(order, min(60, len(order)))
        return {
            "forecasts": {
                "series": str(self.series.ids[self.X.number[row]]),
                "target": self.target,
                "past": past[-4 * self.horizon :],
                "truth": wanted[last],
                "forecast": said[last],
                "low": said[last] - reach,
                "high": said[last] + reach,
                "coverage": COVERAGE,
                "by_step": missed.mean(axis=0),
                "over_time": [float(missed[block].mean()) for block in blocks],
                "when": [self._when(int(tested[block[0]])) for block in blocks],
            }
        }

    def _when(self, row: int) -> str:
        """Return when a forecast was made, in words."""
        number, step = int(self.X.number[row]), int(self.X.start[row]) + self.context
        times = self.series.times
        return str(step) if times is None else _written(times[number][step])

    # -- saved models --------------------------------------------------------------------

    @staticmethod
    def answered_by(model: Any) -> bool:
        """Whether a model forecasts."""
        return isinstance(model, Forecaster | NaiveForecaster | LagModel)

    @staticmethod
    def new_rows(model: Any, data: Sequence[Any], asked: Asked) -> NewRows:
        """Read series to go on from their ends."""
        if len(data) != 1:
            raise InvalidParameter(f"predict: a forecaster takes one table; got {len(data)}.")
        if asked.target is None:
            raise InvalidParameter(
                "predict: the model does not say which column it forecasts; give the folder of "
                "its run."
            )
        series = read_series(data[0], asked.target, asked.time, asked.group, asked.drop)
        names = _ahead(model, series)
        return NewRows(series, names, series.notes, unit="step")

    @staticmethod
    def known_rows(model: Any, data: Any, asked: Asked) -> NewRows:
        """Read series whose last steps are known, as windows."""
        series = read_series(data, asked.known_target(), asked.time, asked.group, asked.drop)
        settings = model.features if isinstance(model, LagModel) else model
        context = getattr(settings, "context", max(2, getattr(settings, "season", 2)))
        found = series_windows(series, context, settings.horizon, "evaluate")
        scales = [seasonal_errors(each[:, :1], _season(model))[0] for each in series]
        y = np.column_stack([found.future()[..., 0], np.array(scales)[found.number]])
        return NewRows(found, {}, series.notes, [], str(asked.target), y, "window")

    @staticmethod
    def known_task(model: Any, rows: NewRows) -> Task:
        """Forecasting the windows."""
        return Task("forecasting", "", np.asarray(rows.y), np.array([]), "window")

    @staticmethod
    def answers(model: Any, X: Any) -> dict[str, np.ndarray]:
        """Return the forecast of each series, step after step, with its interval."""
        found = {"prediction": np.asarray(model.predict(X))[..., 0].ravel()}
        of_mean = getattr(model, "output", "mean") == "mean"
        known = not of_mean or getattr(model, "spread_", 0) is not None
        if hasattr(model, "predict_interval") and known:
            low, high = model.predict_interval(X, COVERAGE)
            found |= {"low": low[..., 0].ravel(), "high": high[..., 0].ravel()}
        return found


class _Sized:
    """What `make_parts` asks of data: how many rows, and its name."""

    def __init__(self, rows: SeriesWindows, source: str) -> None:
        self.rows, self.source = rows, source

    def __len__(self) -> int:
        return len(self.rows)


def _season(model: Any) -> int:
    return int(model.features.season if isinstance(model, LagModel) else model.season)


def _ahead(model: Any, series: Any) -> dict[str, np.ndarray]:
    """Return the columns that say of which series and which time each forecast step is."""
    horizon = model.features.horizon if isinstance(model, LagModel) else model.horizon
    ids = np.repeat(np.array([str(name) for name in series.ids]), horizon)
    step = np.tile(np.arange(1, horizon + 1), len(series))
    found = {"step": step} if len(series) == 1 else {"series": ids, "step": step}
    if series.times is None:
        return found
    ends = [_written(moment) for t in series.times for moment in _next_times(t, horizon)]
    return {"time": np.array(ends), **found}


def _next_times(times: np.ndarray, horizon: int) -> np.ndarray:
    """Return the times of the next steps; months keep the first as their day."""
    ahead = np.arange(1, horizon + 1)
    if times.dtype.kind == "M" and season_of(times) in (4, 12):
        months = times.astype("datetime64[M]")
        if (months.astype(times.dtype) == times).all():
            return months[-1] + ahead * int(np.median(np.diff(months).astype(int)))
    step = np.sort(np.diff(times))[(len(times) - 1) // 2] if len(times) > 1 else 1
    return times[-1] + ahead * step


def _written(moment: Any) -> str:
    text = str(moment)
    return text.split(".")[0].replace("T00:00:00", "") if "T" in text else text
