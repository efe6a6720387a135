"""Rows that a model does not expect: scores, a calibrated threshold, and missing cells filled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from castalia.base import Interval
from castalia.base.input_checks import n_rows, take_rows
from castalia.data.row_splits import SMALLEST, holdout
from castalia.errors import InvalidData

__all__ = ["Anomalies"]


@dataclass(kw_only=True, eq=False, repr=False)
class Anomalies:
    """``score_samples``, ``score``, ``detect`` and ``impute``, by ``_row_scores(x)``.

    Parameters
    ----------
    contamination
        Share of rows like those of ``fit`` that ``detect`` calls anomalies.
    """

    contamination: Annotated[float, Interval(0, 0.5, closed="neither")] = 0.05

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, validation: Any = None) -> Any:
        """Learn the rows, and the score below which ``contamination`` of those held out lie.

        Parameters
        ----------
        X
            Array, frame, ``castalia.data.Dataset``, images.
        y
            Not used, but by conditional models.
        sample_weight
            How often each row counts; 0 leaves it out.
        validation
            Rows ``(X, y)`` to validate on, or a share of the rows; None: as ``training`` says.

        Returns
        -------
        self
        """
        super().fit(X, y, sample_weight, validation)  # type: ignore[misc]
        self._calibrate(X, validation, sample_weight)
        return self

    def _calibrate(self, X: Any, validation: Any, weight: Any) -> None:
        """Learn the threshold on the rows held out; on all where there are none, or weights."""
        X, share = self._checked(X), self.contamination  # type: ignore[attr-defined]
        if weight is not None:
            scores = self.score_samples(X)
            each = np.broadcast_to(np.asarray(weight, dtype=np.float64), scores.shape)
            found = np.quantile(scores, share, weights=each, method="inverted_cdf")
            self.threshold_ = float(found)
            return
        training: Any = self._resolved_training()  # type: ignore[attr-defined]
        wanted = training.validation if validation is None else validation
        if isinstance(wanted, tuple):
            X = wanted[0]
        elif wanted:
            seed = self.settings_["seed"]  # type: ignore[attr-defined]
            held = holdout(n_rows(X), float(wanted), seed=seed, smallest=SMALLEST)[1]
            X = take_rows(X, held) if len(held) else X
        self.threshold_ = float(np.quantile(self.score_samples(X), share))

    def _row_scores(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def score_samples(self, X: Any) -> np.ndarray:
        """Return how expected each row is, (n,): the higher the more usual."""
        each: Any = self._each  # type: ignore[attr-defined]
        return torch.cat(list(each(X, self._row_scores))).double().numpy()

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean of ``score_samples``."""
        return float(self.score_samples(X).mean())

    def detect(self, X: Any) -> np.ndarray:
        """Return which rows are anomalies, (n,) of bool: scores below ``threshold_``."""
        check_is_fitted(self, "threshold_")
        return self.score_samples(X) < self.threshold_

    def impute(self, X: Any) -> np.ndarray:
        """Return an array X with every NaN replaced by what comes back of its row."""
        rows = np.asarray(X)
        if rows.ndim != 2 or rows.dtype.kind not in "fiub":
            raise InvalidData(
                f"{type(self).__name__}.impute: X must be an array (n, D) of numbers; got shape "
                f"{rows.shape} of {rows.dtype}."
            )
        each: Any = self._each  # type: ignore[attr-defined]
        found = torch.cat(list(each(X, self._returned)))
        numbers = self.adapter_.encoder.numbers  # type: ignore[attr-defined]
        found[:, numbers:] = 0  # nothing is missing in what comes back
        return np.where(np.isnan(rows), self._values(found), rows)  # type: ignore[attr-defined]

    def _returned(self, x: Tensor) -> Tensor:
        """Return encoded rows as they come back."""
        net: Any = self.module_  # type: ignore[attr-defined]
        return self._row_likelihood().mode(self._decoded(net.encode(x)))  # type: ignore[attr-defined]
