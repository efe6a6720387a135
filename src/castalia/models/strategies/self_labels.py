"""Self-training: rows that a model is sure of become labelled rows of the next one.

Reference: 1995, Yarowsky, Unsupervised word sense disambiguation rivaling supervised methods, ACL.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from sklearn.base import clone

from castalia.base import Interval, OneOf
from castalia.base.input_checks import n_rows, take_rows
from castalia.models.strategies.strategy_base import Strategy, WithUnlabelled

__all__ = ["SelfTraining"]


@dataclass(kw_only=True, eq=False, repr=False)
class SelfTraining(WithUnlabelled, Strategy):
    """A classifier that labels the rows it is sure of, and learns from them too.

    In each round the model is fitted afresh to the labelled rows and to those unlabelled ones whose
    most probable class has at least ``confidence``. Right where classes are clusters; where the
    first model is wrong and sure of it, its mistakes are learnt.

    Parameters
    ----------
    task
        ``"classification"``: the only one there is.
    confidence
        Probability from which a prediction counts as a label.
    rounds
        Most rounds; fewer when nothing new is labelled.

    Attributes
    ----------
    estimator_ : object
        The classifier of the last round.
    labelled_ : list of int
        Unlabelled rows that were labelled in each round.
    classes_ : ndarray (K,)
        The classes.

    Shapes
    ------
    As those of the wrapped classifier; ``unlabelled``: rows like X.

    Notes
    -----
    Costs one fit a round. Without ``unlabelled`` rows it is the wrapped classifier.

    References
    ----------
    1995, Yarowsky, Unsupervised word sense disambiguation rivaling supervised methods, ACL.

    See Also
    --------
    SemiSupervised : learns from unlabelled rows within one training.

    Examples
    --------
    >>> from castalia.testing.toys import moons
    >>> X, y = moons(200)
    >>> model = SelfTraining(random_state=0).fit(X[:20], y[:20], unlabelled=X[20:])
    >>> model.labelled_[0] > 50
    True
    """

    _classes_only: ClassVar[bool] = True

    task: Annotated[str | None, OneOf(None, "classification")] = None
    confidence: Annotated[float, Interval(0, 1)] = 0.9
    rounds: Annotated[int, Interval(1, whole=True)] = 5

    def _learn(self, member: Any, X: Any, y: np.ndarray, weight: np.ndarray | None) -> Any:
        every, n = self._all_rows(X), len(y)
        self.labelled_: list[int] = []
        model = self._fit_member(clone(member), X, y, weight)
        if n_rows(every) == n:
            return model
        others = take_rows(every, np.arange(n, n_rows(every)))
        before = np.zeros(0, dtype=bool)
        for _ in range(self.rounds):
            probability = model.predict_proba(others)
            sure = probability.max(axis=1) >= self.confidence
            if np.array_equal(sure, before):
                break
            before = sure
            self.labelled_.append(int(sure.sum()))
            found = self.classes_[probability.argmax(axis=1)][sure]
            rows = np.concatenate([np.arange(n), n + np.flatnonzero(sure)])
            w = None if weight is None else np.concatenate([weight, np.ones(len(found))])
            used = take_rows(every, rows)
            model = self._fit_member(clone(member), used, np.concatenate([y, found]), w)
        return model
