"""How served rows differ from the training rows: gaps, unseen words, shifted means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

__all__ = ["DriftCounters"]

FAR = 5.0  # standard deviations from the mean of the training rows


class DriftCounters:
    """Counts a column, for models of tables that have a graph; others count nothing.

    Parameters
    ----------
    predictor
        What answers; its input knows means, deviations and words of the training rows.
    """

    def __init__(self, predictor: Any) -> None:
        entry = getattr(predictor, "entry", None)
        self.values: dict[str, int] = {}
        self.missing: dict[str, int] = {}
        self.far: dict[str, int] = {}
        self.unseen: dict[str, int] = {}
        self._sum: dict[str, float] = {}
        self._scales: dict[str, tuple[float, float]] = {}
        self._words: dict[str, frozenset[str]] = {}
        if entry is not None and entry.kind == "table":
            pairs = zip(entry.mean.tolist(), entry.inverse.tolist(), strict=True)
            self._scales = dict(zip(entry.numeric, pairs, strict=True))
            self._words = {name: frozenset(words) for name, words in entry.words.items()}
        for name in (*self._scales, *self._words):
            self.values[name] = self.missing[name] = 0
        self.far, self._sum = dict.fromkeys(self._scales, 0), dict.fromkeys(self._scales, 0.0)
        self.unseen = dict.fromkeys(self._words, 0)

    def add(self, columns: Mapping[str, np.ndarray]) -> None:
        """Count the values of some rows."""
        for name, (mean, inverse) in self._scales.items():
            known = columns[name][~np.isnan(columns[name])]
            away = (known - mean) * inverse
            self.values[name] += len(columns[name])
            self.missing[name] += len(columns[name]) - len(known)
            self.far[name] += int((np.abs(away) > FAR).sum())
            self._sum[name] += float(away.sum())
        for name, words in self._words.items():
            self.values[name] += len(columns[name])
            for value in columns[name]:
                self.missing[name] += value is None
                self.unseen[name] += value is not None and value not in words

    def shift(self) -> dict[str, float]:
        """Return how far the mean of each column has moved, in standard deviations of training."""
        known = {name: self.values[name] - self.missing[name] for name in self._sum}
        return {name: self._sum[name] / known[name] for name in known if known[name]}

    def samples(self) -> Iterator[tuple[str, str, float]]:
        """Yield metric, column and value."""
        for metric in ("values", "missing", "far", "unseen"):
            for name, count in getattr(self, metric).items():
                yield f"castalia_column_{metric}_total", name, count
        for name, value in self.shift().items():
            yield "castalia_column_mean_shift", name, value
