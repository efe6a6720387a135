"""What strategies share: the network of any estimator, trained in another way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse, vstack
from sklearn.base import is_classifier
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted
from torch import nn

from castalia.base import Estimator
from castalia.base.input_checks import check_rows, n_rows, take_rows
from castalia.errors import InvalidData, InvalidParameter
from castalia.models.ensemble.averaged import default_member
from castalia.models.ensemble.ensemble import Ensemble

__all__ = ["Grouped", "Neural", "Strategy", "WithUnlabelled", "join_rows"]


class Neural:
    """Work of those that wrap one estimator trained by gradients, kept in ``estimator_``."""

    estimator_: Any

    def _default(self) -> Any:
        return default_member(getattr(self, "task", None), epochs=25, lr=3e-2)

    def _neural(self, seed: int, number: int = 0) -> Any:
        """Return a fresh copy of the wrapped estimator with a seed of its own."""
        member: Any = self._member(seed, number)  # type: ignore[attr-defined]
        if not isinstance(member, Estimator):
            raise InvalidParameter(
                f"{type(self).__name__}: `estimator` must be one of ours that is trained by "
                f"gradients; got {type(member).__name__}."
            )
        return member

    def _matrix(self, X: Any, *, reset: bool = False) -> Any:
        base: Any = self._base()  # type: ignore[attr-defined]
        if not isinstance(base, Estimator):
            return super()._matrix(X, reset=reset)  # type: ignore[misc]  # refused later
        adapter = base.adapter.of(base) if reset else self.estimator_.adapter_
        return check_rows(self, adapter, X, reset=reset)

    def _checked(self, X: Any) -> Any:
        check_is_fitted(self, "estimator_")
        return self._matrix(X)

    @property
    def module_(self) -> nn.Module:
        """The trained network."""
        check_is_fitted(self, "estimator_")
        return self.estimator_.module_

    @property
    def history_(self) -> list[dict[str, Any]]:
        """One line an epoch, of the last training."""
        check_is_fitted(self, "estimator_")
        return self.estimator_.history_

    @property
    def diagnosis_(self) -> Any:
        """What the doctor found in the last training."""
        check_is_fitted(self, "estimator_")
        return self.estimator_.diagnosis_


@dataclass(kw_only=True, eq=False, repr=False)
class Strategy(Neural, Ensemble):
    """Base of strategies that predict what the wrapped estimator predicts.

    A subclass gives ``_learn``, which fits a fresh copy of the estimator and returns it.

    Parameters
    ----------
    estimator
        What is trained: an estimator of ours that is trained by gradients. None takes a small
        perceptron.
    """

    _classes_only: ClassVar[bool] = False

    def _learn(self, member: Any, X: Any, y: np.ndarray, weight: np.ndarray | None) -> Any:
        """Return the fitted estimator."""
        raise NotImplementedError

    def _fit_members(
        self, X: Any, y: np.ndarray, weight: np.ndarray | None, seed: int, codes: np.ndarray | None
    ) -> None:
        member = self._neural(seed)
        if codes is None and self._classes_only:
            raise InvalidParameter(
                f"{type(self).__name__}: `estimator` must be a classifier; got "
                f"{type(member).__name__}."
            )
        self.estimator_ = self._learn(member, X, y, weight)

    @available_if(is_classifier)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class for each row."""
        X = self._checked(X)
        return self.estimator_.predict_proba(X)

    def predict(self, X: Any) -> np.ndarray:
        """Return the class, or the number, of each row."""
        X = self._checked(X)
        return self.estimator_.predict(X)


class Grouped:
    """Adds ``groups`` to ``fit``: which client, task or query each row belongs to."""

    _groups: np.ndarray | None = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None) -> Any:
        """Fit on rows X and targets y that come in groups.

        Parameters
        ----------
        X, y
            Rows and targets.
        sample_weight
            How often each row counts.
        groups
            The group of each row, (n,).

        Returns
        -------
        self
        """
        self._groups = self._checked_groups(X, groups, sample_weight)
        try:
            return super().fit(X, y, sample_weight)  # type: ignore[misc]
        finally:
            vars(self).pop("_groups", None)

    def _checked_groups(self, X: Any, groups: Any, weight: Any) -> np.ndarray | None:
        """Return the groups of the rows that count."""
        if groups is None:
            return None
        found = np.asarray(groups)
        if found.shape != (n_rows(X),):
            raise InvalidData(
                f"{type(self).__name__}: `groups` must have one entry for each of the "
                f"{n_rows(X):,} rows; got shape {found.shape}."
            )
        unknown = int(np.sum(found != found)) if found.dtype.kind in "fO" else 0
        if unknown:
            raise InvalidData(
                f"{type(self).__name__}: `groups` must name the group of every row; got NaN for "
                f"{unknown:,}."
            )
        return found if weight is None else found[np.asarray(weight) != 0]


class WithUnlabelled:
    """Adds ``unlabelled`` to ``fit``: further rows whose targets nobody knows."""

    _every: Any = None  # all rows, labelled ones first, while there are others

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, unlabelled: Any = None
    ) -> Any:
        """Fit on rows X with targets y, and on rows without.

        Parameters
        ----------
        X, y
            Rows and targets.
        sample_weight
            How often each row counts.
        unlabelled
            Further rows, of the same kind as X.

        Returns
        -------
        self
        """
        if unlabelled is not None:
            used = X if sample_weight is None else take_rows(X, np.flatnonzero(sample_weight))
            self._every = join_rows(type(self).__name__, used, unlabelled)
        try:
            return super().fit(X, y, sample_weight)  # type: ignore[misc]
        finally:
            vars(self).pop("_every", None)

    def _all_rows(self, X: Any) -> Any:
        """Return the checked rows X and, after them, those without a target."""
        if self._every is None:
            return X
        base: Any = self._base()  # type: ignore[attr-defined]
        return check_rows(self, base.adapter.of(base), self._every, reset=False)


def join_rows(owner: str, first: Any, second: Any) -> Any:
    """Return the rows of two arrays, sparse matrices or lists, one after the other."""
    if isinstance(first, list) and isinstance(second, list):
        return [*first, *second]
    try:
        if issparse(first) or issparse(second):
            return vstack([first, second]).tocsr()
        return np.concatenate([np.asarray(first), np.asarray(second)])
    except ValueError as error:
        raise InvalidData(
            f"{owner}: further rows must be of the kind and width of X, {np.shape(first)}; got "
            f"{np.shape(second)}."
        ) from error
