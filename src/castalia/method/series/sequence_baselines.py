"""Baselines of sequences: what random convolutions or summaries of the channels show.

Random convolutions keep two numbers of each filter's response over time: its largest value and how
often it is above zero (2020, Dempster, Petitjean, Webb, ROCKET, arXiv 1910.13051; here with fewer
filters, drawn from a normal distribution).
Shapes: n sequences, T steps, C channels, F filters.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from castalia.data.sequences import SequenceAdapter, Sequences
from castalia.method.classic_model import ClassicModel

__all__ = ["SEQUENCE_BASELINES", "RandomConvolutions", "StepSummaries", "sequence_baseline"]

SEQUENCE_BASELINES = {
    "guess": "Guessing",
    "convolutions": "Linear model on random convolutions",
    "boosting": "Gradient boosting on summaries",
}
FILTERS = 500
TAPS = (7, 9, 11)
ALPHAS = np.logspace(-2, 4, 13)


class StepSummaries:
    """Each channel by its mean, spread, extremes, ends, slope and roughness; and the length."""

    def __init__(self) -> None:
        self.adapter = SequenceAdapter(missing="forward")

    def fit(self, X: Sequences) -> StepSummaries:
        """Learn scales and categories."""
        self.adapter.fit(self.adapter.check(X, "fit"))
        return self

    def steps(self, X: Any) -> list[np.ndarray]:
        """Return the scaled steps of each sequence; of categories, a column each."""
        found, codes = [], self.adapter.numbers()
        for each in self.adapter.check(X, "predict"):
            coded = self.adapter.encoded(each, np.float64, codes)
            numbers = coded.shape[1] - len(self.adapter.codes)
            parts = [coded[:, :numbers]]
            for i, size in enumerate(self.adapter.categories):
                parts.append(np.eye(size)[coded[:, numbers + i].astype(int)])
            found.append(np.concatenate(parts, axis=1))
        return found

    def encode(self, X: Any) -> np.ndarray:
        """Return (n, columns)."""
        return np.array([_summary(each) for each in self.steps(X)])

    def state(self) -> dict[str, Any]:
        """Return what was learnt."""
        kept = self.adapter.state()
        return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in kept.items()}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> StepSummaries:
        """Return what `state` was of."""
        made = cls()
        arrays = ("mean", "middle", "deviation")
        made.adapter = SequenceAdapter.from_state(
            {k: np.array(v, dtype=float) if k in arrays else v for k, v in state.items()}
        )
        return made


def _summary(each: np.ndarray) -> np.ndarray:
    change = np.diff(each, axis=0) if len(each) > 1 else np.zeros_like(each)
    parts = [
        each.mean(axis=0),
        each.std(axis=0),
        each.min(axis=0),
        each.max(axis=0),
        each[0],
        each[-1],
        (each[-1] - each[0]) / max(1, len(each) - 1),
        np.abs(change).mean(axis=0),
    ]
    return np.concatenate([[len(each)], *parts])


class RandomConvolutions(StepSummaries):
    """Filters drawn once, dilated, each over a few channels; the largest response and its share."""

    def encode(self, X: Any) -> np.ndarray:
        """Return (n, 2 F)."""
        steps = self.steps(X)
        groups = _filters(steps[0].shape[1], max(1, int(self.adapter.usual)))
        found = []
        for each in steps:
            signal = torch.from_numpy(each.T[None])  # (1, C, T)
            parts = [_responses(signal, *group) for group in groups]
            found.append(torch.cat(parts).numpy())
        return np.stack(found)


def _filters(channels: int, usual: int) -> list[tuple[torch.Tensor, torch.Tensor, int]]:
    """Draw filters in groups of taps and dilation: weights (F, C, taps), biases and dilation."""
    random, found = np.random.default_rng(0), []
    pairs = [(taps, 2**i) for taps in TAPS for i in range(8) if 2**i * (taps - 1) < usual]
    for taps, dilation in pairs or [(TAPS[0], 1)]:
        count = -(-FILTERS // max(1, len(pairs)))
        weights = random.normal(size=(count, channels, taps))
        weights *= random.random((count, channels, 1)) < min(1, 2 / channels)
        weights -= weights.mean(axis=2, keepdims=True)
        bias = random.uniform(-1, 1, count)
        found.append((torch.from_numpy(weights), torch.from_numpy(bias), dilation))
    return found


def _responses(
    signal: torch.Tensor, weights: torch.Tensor, bias: torch.Tensor, dilation: int
) -> torch.Tensor:
    """Return the largest response of each filter and its share above zero, (2 F,)."""
    half = (weights.shape[2] - 1) // 2 * dilation
    found = F.conv1d(signal, weights, bias, padding=half, dilation=dilation)[0]  # (F, T)
    return torch.cat([found.amax(dim=1), (found > 0).double().mean(dim=1)])


def sequence_baseline(key: str, kind: str, rounds: int, seed: int) -> ClassicModel:
    """Return one of `SEQUENCE_BASELINES`, not yet fitted."""
    classes = kind == "classification"
    if key == "guess":
        made: Any = DummyClassifier(strategy="prior") if classes else DummyRegressor()
        return ClassicModel(made, StepSummaries())
    if key == "boosting":
        grown = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
        return ClassicModel(grown(max_iter=rounds, random_state=seed), StepSummaries())
    linear: Any = LogisticRegression(C=0.01, max_iter=500) if classes else RidgeCV(ALPHAS)
    return ClassicModel(make_pipeline(StandardScaler(), linear), RandomConvolutions())
