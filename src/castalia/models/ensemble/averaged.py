"""Ensembles that average what their members say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import is_classifier
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from castalia.base import Classifier, Constraint
from castalia.base.input_checks import n_rows
from castalia.models.dense import MLPClassifier, MLPRegressor
from castalia.models.ensemble.ensemble import Ensemble, class_codes
from castalia.models.ensemble.stacked_members import fit_stacked, stacked_outputs
from castalia.train import Training
from castalia.utils.process_lock import lent

__all__ = ["Averaged", "Jobs", "default_member"]


class Jobs(Constraint):
    """A number of processes, as joblib takes it."""

    def rule(self) -> str:
        """Say so."""
        return "a whole number other than 0, or None"

    def holds(self, value: Any) -> bool:
        """Whether joblib takes it."""
        whole = isinstance(value, Integral) and not isinstance(value, bool)
        return value is None or (whole and value != 0)


@dataclass(kw_only=True, eq=False, repr=False)
class Averaged(Ensemble):
    """Base of ensembles whose prediction is the mean, or the vote, of their members."""

    def _fit_all(
        self,
        members: Sequence[Any],
        X: Any,
        y: np.ndarray,
        weight: np.ndarray | None,
        counts: np.ndarray | None = None,
        jobs: int | None = None,
    ) -> None:
        """Fit the members side by side where that is known, else each alone, in so many jobs."""
        self.together_ = fit_stacked(members, X, y, weight, counts)
        if not self.together_:
            weights = [weight] * len(members) if counts is None else counts
            with lent():  # members may be fitted in threads
                members = Parallel(n_jobs=jobs)(
                    delayed(self._fit_member)(member, X, y, own)
                    for member, own in zip(members, weights, strict=True)
                )
        self.estimators_ = list(members)

    def _probabilities(self, X: Any) -> np.ndarray:
        """Return what each member thinks of each class, (M, N, K)."""
        found = np.zeros((len(self.estimators_), n_rows(X), len(self.classes_)))
        if self._stacked(X) and isinstance(self.estimators_[0], Classifier):
            outputs = stacked_outputs(self.estimators_, X)
            for i, member in enumerate(self.estimators_):
                found[i] = member.codec.probability(member, outputs[i]).numpy()
            return found
        for i, member in enumerate(self.estimators_):
            columns = class_codes(self.classes_, member.classes_)
            if hasattr(member, "predict_proba"):
                found[i][:, columns] = member.predict_proba(X)
            else:
                found[i] = self._one_hot(class_codes(self.classes_, member.predict(X)))
        return found

    def _values(self, X: Any) -> np.ndarray:
        """Return the number(s) each member predicts, (M, N) or (M, N, T)."""
        if self._stacked(X) and type(self.estimators_[0]) is MLPRegressor:
            pairs = zip(self.estimators_, stacked_outputs(self.estimators_, X), strict=True)
            return np.stack([member.codec.decode(member, outputs) for member, outputs in pairs])
        return np.stack([member.predict(X) for member in self.estimators_])

    def _stacked(self, X: Any) -> bool:
        return bool(self.together_) and not issparse(X)

    def _one_hot(self, codes: np.ndarray) -> np.ndarray:
        return np.eye(len(self.classes_))[codes]

    def _checked(self, X: Any) -> Any:
        check_is_fitted(self, "estimators_")
        return self._matrix(X)

    @available_if(is_classifier)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the members' mean probability of each class for each row."""
        return self._combined(self._probabilities(self._checked(X)))

    def _combined(self, probabilities: np.ndarray) -> np.ndarray:
        return probabilities.mean(axis=0)

    def predict(self, X: Any) -> np.ndarray:
        """Return the class that the members together find most probable, or their mean number."""
        X = self._checked(X)
        if is_classifier(self):
            return self.classes_[self._combined(self._probabilities(X)).argmax(axis=1)]
        return self._values(X).mean(axis=0)

    def predict_std(self, X: Any) -> np.ndarray:
        """Return how far the members spread: of each class's probability, or of the number."""
        X = self._checked(X)
        found = self._probabilities(X) if is_classifier(self) else self._values(X)
        return found.std(axis=0)


def default_member(task: str | None, epochs: int = 60, lr: float = 1e-2, **settings: Any) -> Any:
    """Return the member of ensembles that were given none."""
    kind = MLPRegressor if task == "regression" else MLPClassifier
    training = Training(validation=0)
    return kind(hidden=(32,), epochs=epochs, lr=lr, training=training, **settings)
