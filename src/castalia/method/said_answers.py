"""Predictions as an array whose rows take the probabilities of classes along."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from castalia.evaluate.class_scores import CLASS_SCORES
from castalia.evaluate.scorers import answer_score

__all__ = ["Said", "scorer_mean"]


class Said(np.ndarray):
    """Predictions of S seeds side by side, (n, S), with ``probabilities``, S times (n, K) or none.

    Examples
    --------
    >>> said = Said.of(np.array([[1], [0]]), [np.array([[0.2, 0.8], [0.6, 0.4]])])
    >>> said[[0]].probabilities[0].tolist()
    [[0.2, 0.8]]
    """

    probabilities: Sequence[np.ndarray]

    @classmethod
    def of(cls, predictions: np.ndarray, probabilities: Sequence[np.ndarray]) -> Said:
        """Return an array with its probabilities."""
        found = predictions.view(cls)
        found.probabilities = probabilities
        return found

    def __array_finalize__(self, origin: Any) -> None:
        self.probabilities = getattr(origin, "probabilities", ())

    def __getitem__(self, rows: Any) -> Any:
        found = super().__getitem__(rows)
        if isinstance(found, Said) and found.ndim == self.ndim:
            found.probabilities = [table[rows] for table in self.probabilities]
        return found


def scorer_mean(metric: str, y: np.ndarray, said: np.ndarray) -> float:
    """Return the mean over seeds of a metric that is none of a mean over rows."""
    plain, tables = np.asarray(said), getattr(said, "probabilities", ())
    each = [
        _score(metric, y, plain[:, seed], tables[seed] if len(tables) else None)
        for seed in range(plain.shape[1])
    ]
    return float(np.mean(each))


def _score(
    metric: str, y: np.ndarray, prediction: np.ndarray, probability: np.ndarray | None
) -> float:
    if prediction.dtype.kind == "f":
        return answer_score(metric, y, prediction)
    classes = 1 + int(max(y.max(), prediction.max())) if probability is None else 0
    table = np.eye(classes)[prediction] if probability is None else probability
    if metric in CLASS_SCORES:
        return CLASS_SCORES[metric](y, prediction, table)
    return answer_score(metric, y, prediction, table, table.shape[1])
