"""Recurrent networks that read a sequence and answer: with a class, with numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from sklearn.metrics import r2_score
from torch import Tensor, nn

from castalia.base import Classifier, OneOf, Regressor, TargetCodec
from castalia.errors import InvalidParameter
from castalia.models.sequence.recurrent_parameters import ReadsSequences, RecurrentEstimator
from castalia.models.sequence.step_targets import StepNumbers, real_parts
from castalia.models.sequence.value_outputs import OUTPUTS, ValueOutput
from castalia.nets.sequence import POOLS, SequencePredictor, StepPredictor
from castalia.objectives import (
    ForecastLoss,
    SquaredError,
    StepSquaredError,
    ValueLosses,
    class_loss,
)
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
    >>> model = RNNClassifier(hidden=16, epochs=20, lr=0.01, random_state=0).fit(X, y)
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
    output
        What is said of a number: its ``"mean"``, its ``"quantile"``s, or the parameters of a
        likelihood, ``"gaussian"``, ``"laplace"``, ``"poisson"`` (counts) or ``"mixture"``;
        ``predict_interval`` reads all but the first.

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
    >>> model = RNNRegressor(hidden=16, epochs=30, lr=0.02, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9, len(model.predict(X)[0]) == len(X[0])
    (True, True)
    """

    codec: ClassVar[TargetCodec] = StepNumbers()

    bidirectional: Annotated[bool, OneOf(True, False)] = False
    pool: Annotated[str, OneOf(*POOLS)] = "last"
    output: Annotated[str, OneOf(*OUTPUTS)] = "mean"

    def _network(self, spec: Spec) -> nn.Module:
        layers, outputs = self._layers(spec), spec.outputs * self._loss().values()
        if self.each_step_:
            return StepPredictor(*layers, outputs, dropout=self.dropout)
        return SequencePredictor(*layers, outputs, pool=self.pool, dropout=self.dropout)

    def _loss(self) -> ForecastLoss:
        return ValueOutput(self.output).loss()

    def _objective(self, spec: Spec) -> Objective:
        if self.output != "mean":
            return ValueLosses(self._loss(), self.adapter_.usual if self.each_step_ else None)
        return StepSquaredError(self.adapter_.usual) if self.each_step_ else SquaredError()

    def predict(self, X: Any) -> Any:
        """Return the numbers of each sequence, (n,) or (n, K); or a list of arrays, by steps.

        They are means, or medians of the output ``"quantile"``.
        """
        return self._read(X, ValueOutput(self.output).middle)

    def predict_interval(self, X: Any, coverage: float = 0.9) -> tuple[Any, Any]:
        """Return bounds between which each number lies with a probability, as ``predict``'s."""
        if not 0 < coverage < 1 or self.output == "mean":
            rule = f"`coverage` must be above 0 and below 1; got {coverage!r}"
            if self.output == "mean":
                rule = "`output` must be 'quantile' or a likelihood for intervals; got 'mean'"
            raise InvalidParameter(f"RNNRegressor.predict_interval: {rule}.")
        read = ValueOutput(self.output).quantile
        low, high = (partial(read, level=(1 + c) / 2) for c in (-coverage, coverage))
        return self._read(X, low), self._read(X, high)

    def _read(self, X: Any, read: Callable[[Tensor], Tensor]) -> Any:
        """Return what is read off the network's numbers, in the units of y."""
        X, count = self._checked(X), self._loss().values()
        parts = real_parts(self, X) if self.each_step_ else [self._outputs(X).numpy()]
        found = [
            self.codec.decode(self, read(torch.from_numpy(part).unflatten(-1, (-1, count))))
            for part in parts
        ]
        return found if self.each_step_ else found[0]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R², of all steps together where each has a target."""
        if not self.each_step_:
            return float(super().score(X, y, sample_weight))
        wanted = self.codec.check(self, self.adapter_, self._checked(X), y)
        said = np.concatenate([part.reshape(len(part), -1) for part in self.predict(X)])
        return float(r2_score(np.concatenate(list(wanted)), said))
