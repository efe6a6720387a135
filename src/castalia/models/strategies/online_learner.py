"""Online learning: every row is answered first and learnt then.

regret_T = sum_t l(w_t; x_t, y_t) - sum_t l(w*; x_t, y_t), w* a model that was fitted to all rows
beforehand.  One learns online when regret_T / T -> 0.  Shapes: T rows.
Reference: 2003, Zinkevich, Online convex programming and generalized infinitesimal gradient ascent,
ICML.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from castalia.base import Interval, check_parameters
from castalia.base.input_checks import check_target, check_weight, n_rows, take_rows
from castalia.errors import InvalidData
from castalia.models.strategies.curriculum import row_losses
from castalia.models.strategies.strategy_base import Strategy
from castalia.models.strategies.untrained import untrained
from castalia.utils.seeds import seed_from

__all__ = ["OnlineLearning"]


@dataclass(kw_only=True, eq=False, repr=False)
class OnlineLearning(Strategy):
    """A network that meets its rows in order, once, and answers each before it learns it.

    ``fit`` goes through the rows once; ``partial_fit`` goes on with rows that arrive later. The
    loss of each row is that before it was learnt, so ``losses_`` is an honest learning curve
    without held-out rows. Right for streams; a fit of many epochs is better where all rows are
    there.

    Parameters
    ----------
    block
        Rows that are answered and then learnt together, a step each.

    Attributes
    ----------
    estimator_ : object
        The network after the last row.
    losses_ : ndarray (T,)
        Loss of each row before it was learnt.

    Shapes
    ------
    As those of the wrapped estimator.

    Notes
    -----
    Columns, scales and classes are learnt from the rows of ``fit``, or of the first
    ``partial_fit``: let it have some dozens. The estimator's ``epochs`` and ``batch_size`` do not
    count.

    References
    ----------
    2003, Zinkevich, Online convex programming and generalized infinitesimal gradient ascent, ICML.

    See Also
    --------
    ContinualLearning : whole tasks one after the other.
    DriftDetector : whether the rows that arrive have changed.

    Examples
    --------
    >>> from castalia.testing.toys import moons
    >>> X, y = moons(300)
    >>> model = OnlineLearning(block=10, random_state=0).fit(X, y)
    >>> bool(model.losses_[-50:].mean() < model.losses_[:50].mean())
    True
    """

    block: Annotated[int, Interval(1, whole=True)] = 1

    def _learn(self, member: Any, X: Any, y: np.ndarray, weight: np.ndarray | None) -> Any:
        untrained(member, X, y, weight)
        self.losses_ = np.empty(0)
        return self._met(member, X, y, weight)

    def _met(self, member: Any, X: Any, y: np.ndarray, weight: np.ndarray | None) -> Any:
        """Answer and learn rows, a block at a time."""
        seen = [self.losses_]
        for rows in np.split(np.arange(len(y)), range(self.block, len(y), self.block)):
            part, own = take_rows(X, rows), None if weight is None else weight[rows]
            seen.append(row_losses(member, part, y[rows]))
            member.set_params(batch_size=len(rows)).partial_fit(part, y[rows], sample_weight=own)
        self.losses_ = np.concatenate(seen)
        return member

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> OnlineLearning:
        """Go on with rows that have arrived.

        Parameters
        ----------
        X, y
            Rows in the order of their arrival, and targets.
        classes
            All classes that y will ever hold, in the first call of a classifier.
        sample_weight
            How often each row counts.

        Returns
        -------
        self
        """
        check_parameters(self)
        first = not hasattr(self, "estimator_")
        X = self._matrix(X, reset=first)
        y, weight = check_target(self, X, y), check_weight(self, X, sample_weight)
        if first:
            self._begin(X, y, weight, classes)
        self.estimator_ = self._met(self.estimator_, X, y, weight)
        return self

    def _begin(self, X: Any, y: np.ndarray, weight: Any, classes: Any) -> None:
        """Learn columns and scales of the first rows; classes are those that were named."""
        if is_classifier(self):
            self.classes_ = np.unique(y if classes is None else classes)
        member = self._neural(seed_from(self.random_state))
        self.losses_ = np.empty(0)
        self.estimator_ = untrained(member, X, y, weight, getattr(self, "classes_", None))

    def regret(self, X: Any, y: Any, against: Any = None) -> np.ndarray:
        """Return the regret after each row, (T,).

        Parameters
        ----------
        X, y
            All rows that were met, in their order.
        against
            The fitted model that knew them beforehand; None fits a copy of the estimator.
        """
        check_is_fitted(self, "estimator_")
        X = self._matrix(X)
        if n_rows(X) != len(self.losses_):
            raise InvalidData(
                f"OnlineLearning.regret: X must be the {len(self.losses_):,} rows that were met; "
                f"got {n_rows(X):,}."
            )
        if against is None:
            seed = seed_from(self.random_state)
            against = self._neural(seed).fit(X, y)
        return np.cumsum(self.losses_ - row_losses(against, X, np.asarray(y)))
