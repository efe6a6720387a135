"""Recurrent networks that read a sequence and answer: with a class, with numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from sklearn.metrics import r2_score
from torch import nn

from castalia.base import Classifier, OneOf, Regressor, TargetCodec
from castalia.models.sequence.recurrent_parameters import ReadsSequences, RecurrentEstimator
from castalia.models.sequence.step_targets import StepNumbers, real_parts
from castalia.nets.sequence import POOLS, SequencePredictor, StepPredictor
from castalia.objectives import SquaredError, StepSquaredError, class_loss
from castalia.objectives.objective import Objective
from castalia.protocols import Spec

__all__ = ["RNNClassifier", "RNNRegressor"]


@dataclass(kw_only=True, eq=False, repr=False)
class RNNClassifier(ReadsSequences, Classifier, RecurrentEstimator):
    """Recurrent network that classifies sequences of any length.

    h_t = f(x_t, h_(t-1)); the last state, or the mean or largest over steps, goes to a linear
    layer; cross-entropy is minimised. Right where order matters or lengths differ; for signals of
    one length whose pattern may come anywhere, ``ConvNet1dClassifier`` is faster.

    Parameters
    ----------
    bidirectional
        Whether each layer also reads from the end.
    pool
        What is classified: the ``"last"`` state, or the ``"mean"`` or ``"max"`` over the steps.
    class_weight
        None, ``"balanced"`` or a dict from class to weight.
    calibrate
        Fit one temperature on the validation rows after training.

    Attributes
    ----------
    classes_ : ndarray (K,)
        The classes, in the order of ``predict_proba``.
    module_ : torch.nn.Module
        The trained ``castalia.nets.sequence.SequencePredictor``.
    history_ : list of dict
        Loss and validation loss of every epoch.

    Shapes
    ------
    X: n sequences: a list of arrays (T, C) or (T,), an array (n, T, C), a tuple of a padded array
    and lengths, a list of lists of words, or ``castalia.data.read_sequences`` of a table.  y: (n,).

    Notes
    -----
    Batches hold sequences of like lengths; what is padded changes no answer. Gradients are clipped
    at norm 1 unless ``training`` says otherwise.

    References
    ----------
    1997, Hochreiter, Schmidhuber, Long short-term memory, Neural Computation 9. 2014, Cho et al.,
    arXiv 1406.1078.

    See Also
    --------
    ConvNet1dClassifier : convolutions over time.
    RNNTagger : a class for every step.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.normal(size=(rng.integers(3, 9), 1)) for _ in range(200)]
    >>> y = np.array([int(x[0, 0] > 0) for x in X])  # what came first
    >>> model = RNNClassifier(hidden=16, epochs=40, lr=0.01, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    bidirectional: Annotated[bool, OneOf(True, False)] = False
    pool: Annotated[str, OneOf(*POOLS)] = "last"

    def _network(self, spec: Spec) -> nn.Module:
        layers = self._layers(spec)
        return SequencePredictor(*layers, spec.outputs, pool=self.pool, dropout=self.dropout)

    def _objective(self, spec: Spec) -> Objective:
        return class_loss(self.multilabel_)


@dataclass(kw_only=True, eq=False, repr=False)
class RNNRegressor(ReadsSequences, Regressor, RecurrentEstimator):
    """Recurrent network that predicts numbers of sequences, or of each of their steps.

    h_t = f(x_t, h_(t-1)); a linear layer on the last state, or on every one; squared error is
    minimised. With a target at every step it is a virtual sensor: what a costly one would show,
    from those that are there.

    Parameters
    ----------
    bidirectional
        Whether each layer also reads from the end; an answer then needs the steps after it too.
    pool
        What is answered from, where a sequence has one target: the ``"last"`` state, or the
        ``"mean"`` or ``"max"`` over the steps.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained ``SequencePredictor``, or ``StepPredictor`` for targets at every step.
    history_ : list of dict
        Loss and validation loss of every epoch, in standardised units of y.

    Shapes
    ------
    X: as for ``RNNClassifier``.  y: (n,) or (n, K); or n arrays (T,) or (T, K), and ``predict``
    returns such.

    Notes
    -----
    What is padded changes no answer.

    References
    ----------
    1997, Hochreiter, Schmidhuber, Long short-term memory, Neural Computation 9.

    See Also
    --------
    RNNForecaster : the future of the series itself.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.normal(size=(rng.integers(4, 12), 1)) for _ in range(100)]
    >>> y = [np.cumsum(x) for x in X]  # at every step
    >>> model = RNNRegressor(hidden=16, epochs=60, lr=0.02, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9, len(model.predict(X)[0]) == len(X[0])
    (True, True)
    """

    codec: ClassVar[TargetCodec] = StepNumbers()

    bidirectional: Annotated[bool, OneOf(True, False)] = False
    pool: Annotated[str, OneOf(*POOLS)] = "last"

    def _network(self, spec: Spec) -> nn.Module:
        layers = self._layers(spec)
        if self.each_step_:
            return StepPredictor(*layers, spec.outputs, dropout=self.dropout)
        return SequencePredictor(*layers, spec.outputs, pool=self.pool, dropout=self.dropout)

    def _objective(self, spec: Spec) -> Objective:
        return StepSquaredError(self.adapter_.usual) if self.each_step_ else SquaredError()

    def predict(self, X: Any) -> Any:
        """Return the numbers of each sequence, (n,) or (n, K); or a list of arrays, by steps."""
        X = self._checked(X)
        if not self.each_step_:
            return super().predict(X)
        found = [part * self.target_scale_ + self.target_mean_ for part in real_parts(self, X)]
        return [part[:, 0] for part in found] if self.one_target_ else found

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R², of all steps together where each has a target."""
        if not self.each_step_:
            return float(super().score(X, y, sample_weight))
        wanted = self.codec.check(self, self.adapter_, self._checked(X), y)
        said = np.concatenate([part.reshape(len(part), -1) for part in self.predict(X)])
        return float(r2_score(np.concatenate(list(wanted)), said))
