"""Estimators that are fitted without gradients: they skip the loop and keep the contract."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from torch import nn

from castalia.base.inputs import check_target, check_weight, check_X, split_target
from castalia.base.params import RandomState, check_parameters
from castalia.protocols import Spec

__all__ = ["DirectEstimator"]


@dataclass(kw_only=True, eq=False, repr=False)
class DirectEstimator(BaseEstimator):
    """Base of fits by a closed form, a count or an update rule.

    A subclass gives ``_solve(X, y, sample_weight)``, which sets the fitted attributes. ``module_``
    may be among them.

    Parameters
    ----------
    random_state
        Seed, for those that draw numbers.
    """

    _unsaved: ClassVar[tuple[str, ...]] = ()

    random_state: Annotated[Any, RandomState()] = None

    def _solve(self, X: np.ndarray, y: Any, sample_weight: np.ndarray | None) -> None:
        """Set the fitted attributes."""
        raise NotImplementedError

    def _network(self, spec: Spec) -> nn.Module:
        """Rebuild the module of a saved estimator, where it has one."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> DirectEstimator:
        """Fit on rows X and targets y.

        Parameters
        ----------
        X
            Array of rows.
        y
            Targets, where the method needs them.
        sample_weight
            How often each row counts.

        Returns
        -------
        self
        """
        check_parameters(self)
        X, y = split_target(X, y) if y is not None else (X, y)
        X = check_X(self, X, reset=True)
        weight = check_weight(self, X, sample_weight)
        self._solve(X, None if y is None else check_target(self, X, y), weight)
        return self
