"""Rows, targets and weights that a search takes apart, fits on and scores."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import check_scoring
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from castalia.data import Dataset
from castalia.data.images import Images
from castalia.data.sequences import SeriesWindows
from castalia.errors import InvalidParameter

__all__ = ["Rows", "weighs", "weight_name"]


class Rows(NamedTuple):
    """Some rows; ``y`` and ``weight`` may be None."""

    X: Any
    y: Any = None
    weight: Any = None

    def take(self, index: np.ndarray) -> Rows:
        """Return the rows at these positions."""
        return Rows(*(_taken(part, index) for part in self))

    def fit(self, model: Any) -> Any:
        """Fit an estimator on the rows and return it."""
        targets = () if self.y is None else (self.y,)
        if self.weight is None:
            return model.fit(self.X, *targets)
        return model.fit(self.X, *targets, **{str(weight_name(model)): self.weight})

    def score(self, model: Any, scoring: Any) -> float:
        """Score a fitted estimator on the rows, weighted where the score can be."""
        scorer = check_scoring(model, scoring)
        weighted = self.weight is not None and weighs(scorer)
        extra = {"sample_weight": self.weight} if weighted else {}
        found = scorer(model, self.X, self.y, **extra)
        if isinstance(found, Mapping):
            raise InvalidParameter(
                "a score must be one number; got several. Give `scoring` a dict from name to "
                "scorer."
            )
        return float(found)


def weight_name(model: Any) -> str | None:
    """Return by which name ``fit`` takes weights, None if it takes none.

    A pipeline hands them to its last step.
    """
    steps = getattr(model, "steps", None)
    if not steps:
        return "sample_weight" if has_fit_parameter(model, "sample_weight") else None
    last, inner = steps[-1]
    return f"{last}__sample_weight" if has_fit_parameter(inner, "sample_weight") else None


def weighs(scorer: Any) -> bool:
    """Whether a scorer can weight rows: by its metric, or by the estimator's own ``score``."""
    if hasattr(scorer, "_accept_sample_weight"):
        return bool(scorer._accept_sample_weight())
    return "sample_weight" in signature(scorer).parameters


def _taken(values: Any, index: np.ndarray) -> Any:
    if values is None:
        return None
    known = isinstance(values, Dataset | Images | SeriesWindows)
    return values.take(index) if known else _safe_indexing(values, index)
