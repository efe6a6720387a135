"""Tables for networks that are trained side by side: quantiles of the numbers, and folds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from scipy.sparse import issparse

from castalia.data.batches import Samples
from castalia.data.table_adapter import TableAdapter
from castalia.data.tables.dataset import Dataset
from castalia.data.tables.table_encoder import TableEncoder

__all__ = ["TabularAdapter", "member_folds"]

MOST_NUMBERS = 2**24  # from which quantiles are taken
LEAST_ROWS = 64  # fewer say too little about when to stop: all members train on all of them


class TabularAdapter(TableAdapter):
    """Tables, with the quantiles of each number and a fold of its own for each member.

    Parameters
    ----------
    encoder
        What standardises, flags and codes; a new one by default.
    members
        How many networks are trained side by side.
    bins
        Pieces between the quantiles.

    Examples
    --------
    >>> adapter = TabularAdapter(bins=2).fit(np.array([[1.0], [2.0], [6.0]]))
    >>> [round(q, 2) for q in adapter.extra["quantiles"][0]]
    [-0.93, -0.46, 1.39]
    """

    def __init__(
        self, encoder: TableEncoder | None = None, members: int = 8, bins: int = 8
    ) -> None:
        super().__init__(encoder)
        self.members, self.bins = members, bins
        self.quantiles: list[list[float]] = []

    @property
    def extra(self) -> Mapping[str, Any]:
        """The quantiles of the numbers, in standardised units."""
        return {"quantiles": self.quantiles}

    def fit(self, X: Any, sample_weight: np.ndarray | None = None) -> TabularAdapter:
        """Learn columns, scales, categories and quantiles."""
        super().fit(X, sample_weight)
        rows, weight = _some(X, sample_weight)
        numbers = self.encoder.encode(rows, np.float64)[:, : self.encoder.numbers]
        self.quantiles = _quantiles(numbers, self.bins, weight)
        return self

    def state(self) -> dict[str, Any]:
        """Return what saving needs."""
        return {**super().state(), "members": self.members, "bins": self.bins}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> TabularAdapter:
        """Return an adapter from its saved state."""
        return cls(TableEncoder.from_state(state), state["members"], state["bins"])

    def split(
        self,
        samples: Samples,
        validation: float | Samples,
        seed: int,
        labels: np.ndarray | None = None,
    ) -> tuple[Samples, Samples]:
        """Hold each row out from some members: all rows train, and all rows judge."""
        if isinstance(validation, Samples) or self.members < 2 or not validation:
            return super().split(samples, validation, seed, labels)
        if len(samples) < LEAST_ROWS:
            return super().split(samples, 0.0, seed, labels)
        held = member_folds(len(samples), self.members, validation, seed=seed, labels=labels)
        judged = torch.from_numpy(held)
        each = torch.ones(len(samples)) if samples.weight is None else samples.weight
        trained = each.unsqueeze(1) * ~judged
        return replace(samples, weight=trained), replace(samples, weight=each.unsqueeze(1) * judged)


def member_folds(
    n: int, members: int, share: float, *, seed: int, labels: np.ndarray | None = None
) -> np.ndarray:
    """Say which members do not train on which rows, (n, members).

    Every row is held out from as many members as ``share`` says, one at least, and every member
    holds out as many rows, the classes in proportion.

    Examples
    --------
    >>> held = member_folds(8, 4, 0.25, seed=0)
    >>> held.sum(axis=0), held.sum(axis=1)
    (array([2, 2, 2, 2]), array([1, 1, 1, 1, 1, 1, 1, 1]))
    """
    order = np.random.default_rng(seed).permutation(n)
    if labels is not None and labels.ndim == 1:
        order = order[np.argsort(labels[order], kind="stable")]
    fold = np.empty(n, dtype=int)
    fold[order] = np.arange(n) % members
    out = max(1, min(members - 1, round(share * members)))
    return (np.arange(members) - fold[:, None]) % members < out


def _some(X: Any, weight: np.ndarray | None) -> tuple[Any, np.ndarray | None]:
    """Return rows enough, evenly spaced where they are in memory, the first of a stream."""
    if isinstance(X, Dataset) and X.streaming:
        first = next(iter(X.chunks()))
        return first, None if weight is None else weight[: len(first)]
    n, columns = (len(X), len(X.columns)) if isinstance(X, Dataset) else X.shape
    rows = np.arange(0, n, -(-n * columns // MOST_NUMBERS) or 1)
    if issparse(X):
        taken: Any = X[rows].toarray()
    elif len(rows) == n:
        taken = X
    else:
        taken = X.take(rows) if isinstance(X, Dataset) else X[rows]
    return taken, None if weight is None else weight[rows]


def _quantiles(numbers: np.ndarray, bins: int, weight: np.ndarray | None) -> list[list[float]]:
    """Return the quantiles of each column, from the smallest value to the largest."""
    shares = np.linspace(0, 1, bins + 1)
    if weight is None:
        found = np.quantile(numbers, shares, axis=0, method="inverted_cdf")
    else:  # as NumPy does from its second version on
        order = np.argsort(numbers, axis=0, kind="stable")
        mass = np.cumsum(weight[order], axis=0)
        mass = np.where(mass == 0, -1.0, mass / mass[-1])  # rows without weight come before all
        at = np.stack([np.searchsorted(column, shares) for column in mass.T], axis=1)
        ordered = np.take_along_axis(numbers, order, axis=0)
        found = np.take_along_axis(ordered, at.clip(max=len(numbers) - 1), axis=0)
    return [[float(q) for q in column] for column in found.T]
