"""Rows that a model does not expect: scores, a calibrated threshold, and missing cells filled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from castalia.base import Interval, TargetCodec
from castalia.errors import InvalidData
from castalia.models.generative.row_estimator import RowCodec
from castalia.protocols import Batch

__all__ = ["Anomalies", "ScoredCodec"]


class ScoredCodec(RowCodec):
    """No targets; learns ``threshold_`` from the scores of rows that are held out."""

    judges = judges_training = True
    most_judged = 2048  # a share of 0.05 is then known to 0.005

    def judged(self, est: Any, batch: Batch) -> Tensor:
        """Return the scores of a batch."""
        return est._row_scores(batch.x)

    def conclude(self, est: Any, outputs: Any, targets: Any) -> None:
        """Learn the score below which ``contamination`` of the rows lie."""
        est.threshold_ = float(np.quantile(outputs.double().numpy(), est.contamination))


@dataclass(kw_only=True, eq=False, repr=False)
class Anomalies:
    """``score_samples``, ``score``, ``detect`` and ``impute``, by ``_row_scores(x)``.

    Parameters
    ----------
    contamination
        Share of rows like those of ``fit`` that ``detect`` calls anomalies.
    """

    codec: ClassVar[TargetCodec] = ScoredCodec()
    contamination: Annotated[float, Interval(0, 0.5, closed="neither")] = 0.05

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
        return self.score_samples(X) < self.threshold_  # type: ignore[attr-defined]

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
