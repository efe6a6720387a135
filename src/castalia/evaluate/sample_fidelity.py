"""How near drawn rows are to real ones, and whether real ones were copied.

References: 2013, Székely, Rizzo, Energy statistics, JSPI 143. 2019, Kynkäänniemi et al., Improved
precision and recall metric for assessing generative models, arXiv 1904.06991. 2017, Lopez-Paz,
Oquab, Revisiting classifier two-sample tests, arXiv 1610.06545.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.stats import ks_2samp
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neighbors import NearestNeighbors

from castalia.data.table_adapter import TableAdapter
from castalia.objectives import energy_distance

__all__ = ["SampleFidelity", "sample_fidelity", "sample_scores"]

MOST = 2000  # rows of each kind that are compared
KNOWN = 50_000  # training rows among which copies are looked for
NEIGHBOURS = 5  # whose distance is the radius of a row's surroundings
TREES = 50
COPY = 1e-9  # standardised distance of a row that is the same


@dataclass(frozen=True)
class SampleFidelity:
    """What ``sample_fidelity`` found.

    Attributes
    ----------
    scores
        ``energy_distance`` (0 is best), ``precision`` and ``recall`` (1 is best), ``detection_auc``
        (0.5 is best: a forest cannot part samples from data), ``pairwise`` (mean difference of two
        columns' correlations), ``copies`` (share of samples that are training rows),
        ``real_copies`` (the same of held-out rows, or of training rows among each other),
        ``nearest`` (median distance of samples to training rows over that of real rows; about 1 is
        best, far below 1 means rows were copied).
    marginals
        Distance of each column's distribution, 0 to 1: Kolmogorov–Smirnov's for numbers, total
        variation for categories.
    """

    scores: dict[str, float]
    marginals: dict[str, float]

    @property
    def copied(self) -> bool:
        """Whether samples lie suspiciously near to training rows."""
        more = self.scores["copies"] - self.scores["real_copies"]
        return more > 0.01 or self.scores["nearest"] < 0.5

    def lines(self) -> list[str]:
        """Return the report in words, a line each."""
        s = self.scores
        worst = max(self.marginals, key=lambda name: self.marginals[name])
        privacy = "training rows seem to be copied" if self.copied else "no sign of copied rows"
        return [
            f"marginals: mean distance {np.mean(list(self.marginals.values())):.3f}, largest "
            f"{self.marginals[worst]:.3f} ({worst})",
            f"pairs of columns: correlations differ by {s['pairwise']:.3f}",
            f"detection: a forest parts them from data with AUC {s['detection_auc']:.3f} "
            "(0.5 is best)",
            f"precision {s['precision']:.3f}, recall {s['recall']:.3f}, energy distance "
            f"{s['energy_distance']:.4f}",
            f"privacy: {privacy}; {100 * s['copies']:.1f} % are training rows (of real rows "
            f"{100 * s['real_copies']:.1f} %), nearest distances are {s['nearest']:.2f} times "
            "those of real rows",
        ]


def sample_scores(real: Any, drawn: Any, held_out: Any = None) -> dict[str, float]:
    """Return the scores of ``sample_fidelity``.

    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> scores = sample_scores(X[:150], X[150:])
    >>> scores["copies"], scores["precision"] > 0.8
    (0.0, True)
    """
    return sample_fidelity(real, drawn, held_out).scores


def sample_fidelity(real: Any, drawn: Any, held_out: Any = None) -> SampleFidelity:
    """Compare drawn rows with real ones.

    Parameters
    ----------
    real
        The rows a model was trained on: an array, a frame, a ``Dataset``, or images.
    drawn
        What it drew, of the same form.
    held_out
        Real rows it has not seen, by which distances are judged; None: the training rows' own
        distances to each other.

    Returns
    -------
    SampleFidelity
    """
    adapter = TableAdapter().fit(_flat(real))
    matrix = _pixels(real) if isinstance(real, np.ndarray) and real.ndim > 2 else adapter.matrix
    known = _thin(matrix(_flat(real)), KNOWN)
    rows, some = _thin(known), _thin(matrix(_flat(drawn)))
    other = None if held_out is None else _thin(matrix(_flat(held_out)))
    precision, recall = _surroundings(rows, some)
    scores = {
        "energy_distance": float(energy_distance(*map(torch.from_numpy, (rows, some)))),
        "precision": precision,
        "recall": recall,
        "detection_auc": _detection(rows, some),
        "pairwise": _pairwise(rows, some),
        **_nearness(known, some, other),
    }
    return SampleFidelity(scores, _marginals(adapter, rows, some))


def _marginals(adapter: TableAdapter, rows: np.ndarray, some: np.ndarray) -> dict[str, float]:
    """Return the distance between the distributions of each column, 0 to 1."""
    encoder, sizes = adapter.encoder, [size - 1 for size in adapter.categories]
    first = encoder.inputs - len(sizes)
    found = {
        name: float(ks_2samp(rows[:, i], some[:, i]).statistic)
        for i, name in enumerate(encoder.names[:first])
    }
    for name, size in zip(encoder.names[first:], sizes, strict=True):
        shares = [part[:, first : first + size].mean(axis=0) for part in (rows, some)]
        gap = np.append(shares[0] - shares[1], shares[1].sum() - shares[0].sum())  # missing ones
        found[name] = float(np.abs(gap).sum() / 2)
        first += size
    return found


def _pixels(images: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Return how images become rows: one scale for all pixels, as many hardly ever vary."""
    scale = float(images.std()) or 1.0
    return lambda rows: rows.astype(np.float64) / scale


def _flat(X: Any) -> Any:
    return X.reshape(len(X), -1) if isinstance(X, np.ndarray) else X


def _thin(rows: np.ndarray, most: int = MOST) -> np.ndarray:
    """Return some rows, evenly spaced."""
    index = np.unique(np.linspace(0, len(rows) - 1, min(most, len(rows))).astype(int))
    return np.ascontiguousarray(rows[index])


def _surroundings(rows: np.ndarray, some: np.ndarray) -> tuple[float, float]:
    """Return the share of samples within reach of data, and of data within reach of samples."""

    def within(inner: np.ndarray, outer: np.ndarray) -> float:
        near = NearestNeighbors(n_neighbors=min(NEIGHBOURS + 1, len(outer))).fit(outer)
        radius = near.kneighbors(outer)[0][:, -1]
        distance, index = near.kneighbors(inner)
        return float((distance <= radius[index]).any(axis=1).mean())

    return within(some, rows), within(rows, some)


def _detection(rows: np.ndarray, some: np.ndarray) -> float:
    """Return the AUC of a forest that parts samples from data, on rows it was not trained on."""
    X = np.concatenate([rows, some])
    y = np.repeat([0, 1], [len(rows), len(some)])
    forest = RandomForestClassifier(TREES, min_samples_leaf=3, random_state=0)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)  # tables are often sorted
    said = cross_val_predict(forest, X, y, cv=folds, method="predict_proba")[:, 1]
    return float(roc_auc_score(y, said))


def _pairwise(rows: np.ndarray, some: np.ndarray) -> float:
    """Return the mean difference of two columns' correlations."""
    varied = (np.ptp(rows, axis=0) > 0) & (np.ptp(some, axis=0) > 0)  # std is not 0 by rounding
    if varied.sum() < 2:
        return 0.0
    first, second = (np.corrcoef(part[:, varied], rowvar=False) for part in (rows, some))
    return float(np.abs(first - second)[np.triu_indices(len(first), 1)].mean())


def _nearness(known: np.ndarray, some: np.ndarray, other: np.ndarray | None) -> dict[str, float]:
    """Return the share of copies, and how near samples are to training rows."""
    near = NearestNeighbors(n_neighbors=1).fit(known)
    found = near.kneighbors(some)[0][:, 0]
    if other is None:
        usual = near.kneighbors(_thin(known), n_neighbors=2)[0][:, 1]
    else:
        usual = near.kneighbors(other)[0][:, 0]
    ratio = (float(np.median(found)) + COPY) / (float(np.median(usual)) + COPY)
    copies, real = (float((distance < COPY).mean()) for distance in (found, usual))
    return {"copies": copies, "real_copies": real, "nearest": ratio}
