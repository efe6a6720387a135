"""Echo state classifier: sequences classified by the states of a reservoir."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from castalia.base import OneOf, check_parameters
from castalia.base.input_checks import check_target
from castalia.errors import InvalidData
from castalia.models.sequence.direct_sequences import Observations, read_observations
from castalia.models.sequence.echo_state_base import EchoStateBase
from castalia.models.sequence.echo_state_readout import RidgeSums, ridge
from castalia.utils.plain_torch import plain_torch

__all__ = ["EchoStateClassifier"]


@dataclass(kw_only=True, eq=False, repr=False)
class EchoStateClassifier(ClassifierMixin, EchoStateBase):
    """Reservoir of random recurrent units whose states classify whole sequences.

    The mean state and the last one are the features of a ridge regression on the classes. Right for
    short sequences of few rows, fitted in seconds; with many rows a trained recurrent network gets
    further.

    Parameters
    ----------
    pool
        Features of a sequence: ``"mean"`` state, ``"last"`` state, or ``"both"``.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The classes.
    reservoirs_ : dict
        Weights of the reservoirs.
    coef_ : ndarray of shape (F, K)
        Readout of a constant and the pooled states, one column a class.

    Shapes
    ------
    X: (B, T, D) or a list of arrays (T,) or (T, D). y: (B,).

    Notes
    -----
    Targets are 1 for the class and -1 for the others; the largest output wins.

    References
    ----------
    2007, Jaeger, Lukoševičius, Popovici, Siewert, Optimization and applications of echo state
    networks with leaky-integrator neurons.

    See Also
    --------
    castalia.EchoStateNetwork : outputs of every step.

    Examples
    --------
    >>> from castalia.testing.toys import voices
    >>> X, y = voices()
    >>> model = EchoStateClassifier(units=100, random_state=0).fit(X[:120], y[:120])
    >>> model.score(X[120:], y[120:]) > 0.9
    True
    """

    pool: Annotated[str, OneOf("both", "mean", "last")] = "both"

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> EchoStateClassifier:
        """Draw the reservoirs and fit the readout.

        Parameters
        ----------
        X
            Sequences.
        y
            A class for each.
        sample_weight
            How often each sequence counts.

        Returns
        -------
        self
        """
        check_parameters(self)
        found = read_observations(X, type(self).__name__)
        labels = check_target(self, found.parts, y)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise InvalidData(
                "EchoStateClassifier: y must hold at least two classes; got one class, "
                f"{self.classes_[0]!r}."
            )
        weight = np.ones(len(codes)) if sample_weight is None else np.asarray(sample_weight)
        self.n_features_in_ = found.channels
        with plain_torch(), torch.no_grad():
            self._keep(self._adapted(self._draw(found.channels), found))
            z = torch.from_numpy(self._pooled(found))
        signs = torch.from_numpy(2.0 * (codes[:, None] == np.arange(len(self.classes_))) - 1)
        root = torch.from_numpy(np.sqrt(weight))[:, None]
        self.coef_ = ridge(RidgeSums.of([z * root], signs * root), self.alpha)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the readout of each class, (B, K); of two classes that of the second, (B,)."""
        check_is_fitted(self, "coef_")
        found = read_observations(X, type(self).__name__, channels=self.n_features_in_)
        with plain_torch(), torch.no_grad():
            outputs = self._pooled(found) @ self.coef_
        return outputs if len(self.classes_) > 2 else outputs[:, 1]

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each sequence, (B,)."""
        outputs = self.decision_function(X)
        best = outputs.argmax(axis=1) if outputs.ndim > 1 else (outputs > 0).astype(int)
        return self.classes_[best]

    def _pooled(self, found: Observations) -> np.ndarray:
        """Return a constant and the pooled states of each sequence, (B, F)."""
        buckets = found.buckets(self._tensor(found.parts[0][:1]).device)
        rows = []
        for bucket in buckets:
            states = self._states(bucket)
            parts = [torch.ones_like(states[:, 0, :1])]
            if self.pool != "last":
                inside = bucket.mask[..., None]
                parts.append((states * inside).sum(dim=1) / bucket.lengths[:, None])
            if self.pool != "mean":
                at = torch.arange(len(states), device=states.device)
                parts.append(states[at, bucket.lengths - 1])
            rows.append(torch.cat(parts, dim=1))
        return found.of_each(buckets, rows)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
