"""The adapter of series to be forecast: windows of the past with the steps that follow them.

All steps lie in one tensor, and a batch is gathered from it, so overlapping windows take no room.
Shapes: S steps, C channels, K channels forecast, N windows, L context, H horizon.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from castalia.data.adapter_base import Adapter
from castalia.data.batches import Samples
from castalia.data.data_reader import read
from castalia.data.row_splits import SMALLEST
from castalia.data.sequences.missing_steps import fill, refuse_missing
from castalia.data.sequences.sequence_set import Sequences, as_sequences
from castalia.data.sequences.window_pairs import check_steps
from castalia.errors import DataWarning, InvalidData, InvalidParameter
from castalia.protocols import Rows
from castalia.utils.text import did_you_mean, listing, plural

__all__ = ["SeriesAdapter", "SeriesWindows", "as_series", "covered", "series_windows"]


class SeriesWindows:
    """Windows over one series or several: which steps each covers, in the order of time.

    Parameters
    ----------
    series
        The series.
    number, start
        Of each window, the series and its first step, (N,).
    context, horizon
        Steps of the past and of the future.
    """

    def __init__(
        self, series: Sequences, number: np.ndarray, start: np.ndarray, context: int, horizon: int
    ) -> None:
        self.series, self.number, self.start = series, number, start
        self.context, self.horizon = context, horizon

    def __len__(self) -> int:
        return len(self.start)

    def take(self, index: Any) -> SeriesWindows:
        """Return the windows at these positions."""
        chosen = np.asarray(index)
        return SeriesWindows(
            self.series, self.number[chosen], self.start[chosen], self.context, self.horizon
        )

    def past(self) -> np.ndarray:
        """Return the known steps of each window, (N, L, C)."""
        return self._steps(0, self.context)

    def future(self) -> np.ndarray:
        """Return the steps to be forecast, (N, H, C)."""
        return self._steps(self.context, self.horizon)

    def _steps(self, offset: int, length: int) -> np.ndarray:
        place = np.arange(offset, offset + length)
        parts = np.empty((len(self), length, len(self.series.channels)))
        for number in np.unique(self.number):
            mine = self.number == number
            parts[mine] = self.series[int(number)][self.start[mine][:, None] + place]
        return parts

    def fingerprint(self) -> str:
        """Return a mark of the content."""
        mark = hashlib.sha256(self.series.fingerprint().encode())
        mark.update(np.ascontiguousarray([self.number, self.start]).tobytes())
        return mark.hexdigest()


def as_series(X: Any, owner: str) -> tuple[Sequences, bool]:
    """Return X as series of numbers, and whether it was one alone.

    An array (S,) or (S, C) is one series, as is a frame of numbers; (n, S, C) and lists are
    several.
    """
    if isinstance(X, Sequences):
        return X, False
    if hasattr(X, "columns"):
        return _of_frame(X, owner), True
    alone = isinstance(X, np.ndarray | Tensor) and X.ndim < 3 and X.dtype != object
    if isinstance(X, list) and X and all(np.ndim(each) == 0 for each in X):
        X, alone = np.asarray(X), True  # a list of numbers
    found = as_sequences([X] if alone else X, owner)
    if any(each.dtype == object for each in found):
        raise InvalidData(f"{owner}: a series must hold numbers only; got words.")
    return found, alone


def _of_frame(X: Any, owner: str) -> Sequences:
    table = read(X)
    names = list(table.columns)
    try:
        values = np.column_stack([table.column(name).astype(np.float64) for name in names])
    except (TypeError, ValueError) as error:
        raise InvalidData(
            f"{owner}: a table of one series must hold numbers only; got {error}. Columns of "
            "groups and times go to castalia.data.read_sequences(X, group=…, time=…)."
        ) from error
    return Sequences([values], channels=names)


def series_windows(
    series: Sequences, context: int, horizon: int, owner: str, *, stride: int = 1
) -> SeriesWindows:
    """Return all windows of series; those too short for one are left out with a warning."""
    counts = np.maximum(series.lengths - context - horizon + stride, 0) // stride
    if not counts.any():
        check_steps(owner, int(series.lengths.max()), context, horizon)
    if not counts.all():
        short = [str(name) for name in series.ids[counts == 0].tolist()]
        warnings.warn(
            f"{owner}: {plural(len(short), 'series')} with fewer than {context + horizon} steps "
            f"left out: {listing(short, 'and', 5)}.",
            DataWarning,
            stacklevel=3,
        )
    number = np.repeat(np.arange(len(series)), counts)
    start = np.concatenate([np.arange(n) * stride for n in counts])
    return SeriesWindows(series, number, start, context, horizon)


class WindowRows(Rows):
    """Windows of one tensor of steps: a batch is past (B, L, C) and future (B, H, K)."""

    fixed = True

    def __init__(
        self,
        steps: Tensor,
        first: Tensor,
        context: int,
        horizon: int,
        targets: Tensor,
        number: np.ndarray,
    ) -> None:
        self.steps, self.first, self.targets = steps, first, targets
        self.number = number  # of the series that each window is of, (N,)
        self.context, self.horizon = context, horizon
        self.shape, self.nbytes = (steps.shape[1], context), steps.nbytes + first.nbytes

    def __len__(self) -> int:
        return len(self.first)

    def take(self, index: Tensor, width: int | None = None) -> tuple[Tensor, Tensor]:
        """Return past and future of some windows."""
        first = self.first.index_select(0, index)[:, None]
        whole = self.context + self.horizon
        place = torch.arange(whole, device=index.device)
        found = self.steps[first + place]  # (B, L + H, C)
        past, future = found.split([self.context, self.horizon], dim=1)
        return past, future.index_select(2, self.targets)

    def to(self, device: Any) -> Self:
        """Return the same rows held on a device."""
        steps, first, targets = (p.to(device) for p in (self.steps, self.first, self.targets))
        return type(self)(steps, first, self.context, self.horizon, targets, self.number)


class SeriesAdapter(Adapter):
    """Series of numbers, each channel brought to mean 0 and deviation 1 of the steps trained on.

    Parameters
    ----------
    context, horizon, stride
        Steps of the past, of the future, and from one window to the next.
    target
        The channels to forecast, by name or number; None: all.
    missing
        What to do about NaN and infinity: ``"error"``, ``"forward"`` or ``"mean"``.
    """

    def __init__(
        self,
        context: int = 1,
        horizon: int = 1,
        stride: int = 1,
        target: Any = None,
        missing: str = "error",
    ) -> None:
        self.context, self.horizon, self.stride = context, horizon, stride
        self.target, self.missing = target, missing
        self.inputs, self.targets, self.names = 0, list[int](), list[str]()
        self.mean = self.deviation = np.zeros(0)

    @property
    def extra(self) -> Mapping[str, Any]:
        """Which channels are forecast, and their scales."""
        chosen = self.targets
        return {
            "targets": list(chosen),
            "mean": self.mean[chosen].tolist(),
            "deviation": self.deviation[chosen].tolist(),
        }

    @property
    def shape(self) -> torch.Size:
        """Channels and steps of a past."""
        return torch.Size([self.inputs, self.context])

    def check(self, X: Any, owner: str) -> SeriesWindows:
        """Return X as windows."""
        if isinstance(X, SeriesWindows):
            series = self.check_series(X.series, owner)[0]
            if (X.context, X.horizon) != (self.context, self.horizon):
                raise InvalidParameter(
                    f"{owner}: windows must have context {self.context} and horizon "
                    f"{self.horizon}; got {X.context} and {X.horizon}."
                )
            return SeriesWindows(series, X.number, X.start, X.context, X.horizon)
        series, _ = self.check_series(X, owner)
        return series_windows(series, self.context, self.horizon, owner, stride=self.stride)

    def check_series(self, X: Any, owner: str) -> tuple[Sequences, bool]:
        """Return X as series, after ``fit`` of as many channels, and whether it was one alone."""
        series, alone = as_series(X, owner)
        width = series[0].shape[1]
        if self.inputs and width != self.inputs:
            raise InvalidData(
                f"{owner}: series must have {self.inputs} channels, as in fit; got {width}."
            )
        if self.missing == "error":
            refuse_missing(series.steps, owner, series.channels)
        elif not self.inputs and any(not np.isfinite(s).any(axis=0).all() for s in series):
            name = _empty_channel(series)
            raise InvalidData(
                f"{owner}: every channel of a series must have a value somewhere; `{name}` has "
                "none. Leave it out."
            )
        _numbers_of(self.target, series.channels, owner)
        return series, alone

    def fit(self, X: SeriesWindows, sample_weight: np.ndarray | None = None) -> SeriesAdapter:
        """Learn channels and scales, from the steps that these windows cover."""
        series = X.series
        self.inputs, self.names = len(series.channels), list(series.channels)
        self.targets = _numbers_of(self.target, series.channels, "fit")
        steps = np.concatenate(covered(X))
        steps = np.where(np.isfinite(steps), steps.astype(np.float64), np.nan)
        there = np.isfinite(steps).sum(axis=0).clip(1)
        self.mean = np.nansum(steps, axis=0) / there
        spread = np.sqrt(np.nansum(np.square(steps - self.mean), axis=0) / there)
        self.deviation = np.where(spread > 0, spread, 1.0)
        return self

    def rows(self, X: SeriesWindows, dtype: Any) -> WindowRows:
        """Return windows as rows of a training."""
        series, begin = X.series, np.cumsum([0, *X.series.lengths[:-1]])
        steps = np.concatenate([self.scaled(each, dtype) for each in series])
        first = torch.from_numpy(begin[X.number] + X.start)
        targets = torch.tensor(self.targets)
        size = (self.context, self.horizon)
        return WindowRows(torch.from_numpy(steps), first, *size, targets, X.number)

    def blocks(self, X: SeriesWindows, dtype: Any) -> Iterator[Tensor]:
        """Yield the pasts of windows in order."""
        rows = self.rows(X, dtype)
        size = max(1, (1 << 20) // max(1, self.shape.numel()))
        for index in torch.arange(len(rows)).split(size):
            yield rows.take(index)[0]

    def scaled(self, values: np.ndarray, dtype: Any) -> np.ndarray:
        """Return steps filled in and scaled."""
        filled = values if self.missing == "error" else fill(values, self.missing, self.mean)
        return ((filled - self.mean) / self.deviation).astype(dtype)

    def split(
        self,
        samples: Samples,
        validation: float | Samples,
        seed: int,
        labels: np.ndarray | None = None,
    ) -> tuple[Samples, Samples]:
        """Hold out the last windows of each series; none of their futures is trained on."""
        if isinstance(validation, Samples):
            return samples, validation
        rows: Any = samples.x
        first = rows.first.numpy()
        cuts = np.flatnonzero(np.diff(rows.number)) + 1  # where a series begins
        kept, held = [], []
        for part in np.split(np.arange(len(first)), cuts):
            size = int(len(part) * validation)
            late = part[len(part) - size :]
            held.append(late)
            bound = first[late[0]] if size else np.inf
            kept.append(part[first[part] + self.horizon <= bound])
        kept_rows, held_rows = np.concatenate(kept), np.concatenate(held)
        if len(held_rows) < SMALLEST or not len(kept_rows):
            return samples, samples.subset(np.arange(0))
        return samples.subset(kept_rows), samples.subset(held_rows)


def covered(X: SeriesWindows) -> list[np.ndarray]:
    """Return of each series the steps from its first window to the end of its last."""
    whole, found = X.context + X.horizon, []
    for number in np.unique(X.number):
        start = X.start[X.number == number]
        found.append(X.series[int(number)][start.min() : start.max() + whole])
    return found


def _empty_channel(series: Sequences) -> str:
    return next(
        series.channels[i]
        for each in series
        for i in range(each.shape[1])
        if not np.isfinite(each[:, i]).any()
    )


def _numbers_of(target: Any, channels: list[str], owner: str) -> list[int]:
    """Return the numbers of the channels to forecast."""
    if target is None:
        return list(range(len(channels)))
    asked = list(target) if isinstance(target, list | tuple) else [target]
    found = []
    for one in asked:
        place = channels.index(one) if one in channels else one
        if not isinstance(place, int) or not 0 <= place < len(channels):
            raise InvalidParameter(
                f"{owner}: `target` must name channels, {listing(channels, 'and', 8)}; got "
                f"{one!r}.{did_you_mean(str(one), channels)}"
            )
        found.append(place)
    return found
