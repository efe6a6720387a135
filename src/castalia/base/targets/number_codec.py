"""Targets that are numbers, one a row or several, brought to mean 0 and deviation 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from castalia.base.targets.target_codec import Target, TargetCodec
from castalia.errors import InvalidData

__all__ = ["NumberCodec", "numeric_target"]


class NumberCodec(TargetCodec):
    """Learns ``target_mean_``, ``target_scale_`` and whether y has one column, ``one_target_``."""

    def fit(
        self, est: Any, adapter: Any, X: Any, y: np.ndarray, weight: np.ndarray | None
    ) -> Target:
        """Learn mean and deviation, and scale."""
        values = numeric_target(est, y).reshape(len(y), -1)
        est.one_target_ = y.ndim == 1
        est.target_mean_ = np.average(values, axis=0, weights=weight)
        spread = np.sqrt(np.average((values - est.target_mean_) ** 2, axis=0, weights=weight))
        est.target_scale_ = np.where(spread > 0, spread, 1.0)
        return super().fit(est, adapter, X, y, weight)

    def encode(self, est: Any, y: np.ndarray) -> Target:
        """Scale."""
        values = numeric_target(est, y).reshape(len(y), -1)
        scaled = (values - est.target_mean_) / est.target_scale_
        return Target(torch.from_numpy(scaled), values.shape[1])

    def decode(self, est: Any, outputs: Any) -> np.ndarray:
        """Return outputs in the units of y."""
        values = outputs.numpy().astype(np.float64) * est.target_scale_ + est.target_mean_
        if not np.isfinite(values).all():
            raise InvalidData(
                f"{type(est).__name__}: predictions of these rows are not finite: they lie far "
                "from the rows trained on, or the weights grew without bound. Check X, or lower "
                "`lr`."
            )
        return values[:, 0] if est.one_target_ else values


def numeric_target(owner: Any, y: np.ndarray) -> np.ndarray:
    """Return y as float64, one or two dimensions, or say what in it is no number."""
    if y.ndim > 2:
        raise InvalidData(
            f"{type(owner).__name__}: y must have one or two dimensions; got shape {y.shape}."
        )
    if y.dtype.kind in "mM":
        raise InvalidData(
            f"{type(owner).__name__}: the target of a regression must hold numbers; got dates. "
            "Turn them into numbers of a unit, such as days since the first."
        )
    try:
        return y.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidData(
            f"{type(owner).__name__}: the target of a regression must hold numbers; got "
            f"{y.ravel().tolist()[0]!r}. "
            "Use a classifier for words."
        ) from error
