"""Liquid state machine: spiking neurons with tiring synapses, and a linear readout."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from castalia.base import DirectEstimator, Interval, OneOf, check_parameters
from castalia.base.input_checks import check_target
from castalia.errors import InvalidData
from castalia.models.sequence.direct_sequences import Bucket, Observations, read_observations
from castalia.models.sequence.echo_state_readout import RidgeSums, ridge
from castalia.models.sequence.spiking_encoders import delta_code
from castalia.models.sequence.spiking_neurons import DynamicSynapse, IntegrateAndFire
from castalia.utils.plain_torch import plain_torch
from castalia.utils.seeds import generator, seed_from

__all__ = ["LiquidStateMachine"]

SYNAPSE = 3.0  # milliseconds in which a synaptic current falls
TRACE = 30.0  # and in which the readout forgets a spike


@dataclass(kw_only=True, eq=False, repr=False)
class LiquidStateMachine(ClassifierMixin, DirectEstimator):
    """Random network of spiking neurons whose activity classifies sequences of spikes.

    Leaky integrate-and-fire neurons, four in five of them excitatory, are wired at random through
    synapses that tire and recover; the mean and last filtered activity is read by ridge regression.
    Right for spike trains and for the study of such circuits; on plain signals
    ``EchoStateClassifier`` is quicker and better.

    Parameters
    ----------
    units
        Neurons.
    connections
        Mean number of neurons that a neuron receives.
    strength, input_strength
        Scale of the currents among the neurons, and from the inputs.
    encoder
        ``"none"``: X holds spikes, 0 or 1; ``"rate"``: probabilities of spikes; ``"delta"``:
        numbers, whose rises and falls by ``threshold`` are spikes.
    threshold
        Of ``"delta"``.
    dynamic
        Whether synapses tire; without, every spike has the effect of a first one.
    alpha
        Penalty of the readout; larger is steadier in noise.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The classes.
    weights_, inputs_ : ndarray
        Currents among neurons (N, N), from the row's to the column's, and from inputs (C, N).
    coef_ : ndarray of shape (1 + 2 N, K)
        The readout.

    Shapes
    ------
    X: (B, T, D) or a list of arrays (T, D), a step a millisecond. y: (B,).

    Notes
    -----
    All sequences of like length advance together, on a CPU or a GPU; a step costs O(B N^2).
    Departs from Maass: synapses of one kind, wiring without distances.

    References
    ----------
    2002, Maass, Natschläger, Markram, Real-time computing without stable states, Neural
    Computation 14.

    See Also
    --------
    castalia.EchoStateClassifier : units that pass on numbers.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> y = np.arange(60) % 2
    >>> late = np.arange(50) >= 25
    >>> chance = np.where(late == y[:, None], 0.3, 0.05)[..., None]  # early or late spikes
    >>> X = (random.random((60, 50, 4)) < chance).astype(float)
    >>> model = LiquidStateMachine(units=60, random_state=0).fit(X[:40], y[:40])
    >>> model.score(X[40:], y[40:]) > 0.75
    True
    """

    units: Annotated[int, Interval(1, whole=True)] = 135
    connections: Annotated[int, Interval(1, whole=True)] = 10
    strength: Annotated[float, Interval(0)] = 1.0
    input_strength: Annotated[float, Interval(0)] = 8.0
    encoder: Annotated[str, OneOf("none", "rate", "delta")] = "none"
    threshold: Annotated[float, Interval(0, closed="neither")] = 0.1
    dynamic: Annotated[bool, OneOf(True, False)] = True
    alpha: Annotated[float, Interval(0)] = 1e-2

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> LiquidStateMachine:
        """Wire the neurons and fit the readout.

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
                "LiquidStateMachine: y must hold at least two classes; got one class, "
                f"{self.classes_[0]!r}."
            )
        self.n_features_in_ = found.channels
        self._wire(found.channels * (2 if self.encoder == "delta" else 1))
        weight = np.ones(len(codes)) if sample_weight is None else np.asarray(sample_weight)
        root = torch.from_numpy(np.sqrt(weight))[:, None]
        z = torch.from_numpy(self._activity(found))
        signs = torch.from_numpy(2.0 * (codes[:, None] == np.arange(len(self.classes_))) - 1)
        self.coef_ = ridge(RidgeSums.of([z * root], signs * root), self.alpha)
        return self

    def _wire(self, channels: int) -> None:
        """Draw who excites or inhibits whom, and what inputs reach."""
        random, n = np.random.default_rng(seed_from(self.random_state)), self.units
        sign = np.where(random.random((n, 1)) < 0.8, 1.0, -1.0)
        wired = random.random((n, n)) < min(1.0, self.connections / n)
        size = self.strength * 10 / self.connections
        self.weights_ = sign * wired * random.gamma(2.0, size / 2, (n, n))
        reached = random.random((channels, n)) < 0.3
        self.inputs_ = reached * random.gamma(2.0, self.input_strength / 2, (channels, n))

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each sequence, (B,)."""
        outputs = self.decision_function(X)
        best = outputs.argmax(axis=1) if outputs.ndim > 1 else (outputs > 0).astype(int)
        return self.classes_[best]

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the readout of each class, (B, K); of two classes that of the second, (B,)."""
        check_is_fitted(self, "coef_")
        found = read_observations(X, type(self).__name__, channels=self.n_features_in_)
        outputs = self._activity(found) @ self.coef_
        return outputs if len(self.classes_) > 2 else outputs[:, 1]

    def spikes(self, X: Any) -> Any:
        """Return the spikes of all neurons, (T, N) a sequence, in the form of X."""
        check_is_fitted(self, "coef_")
        found = read_observations(X, type(self).__name__, channels=self.n_features_in_)
        with plain_torch(), torch.no_grad():
            buckets = found.buckets(self._tensor(found.parts[0][:1]).device)
            return found.together(buckets, [self._run(bucket) for bucket in buckets])

    def _activity(self, found: Observations) -> np.ndarray:
        """Return a constant, the mean and the last trace of spikes, (B, 1 + 2 N)."""
        with plain_torch(), torch.no_grad():
            buckets = found.buckets(self._tensor(found.parts[0][:1]).device)
            rows = []
            for bucket in buckets:
                spikes = self._run(bucket) * bucket.mask[..., None]
                last, kept = torch.zeros_like(spikes[:, 0]), math.exp(-1 / TRACE)
                for t in range(spikes.shape[1]):
                    inside = (t < bucket.lengths)[:, None]
                    last = torch.where(inside, kept * last + spikes[:, t], last)
                mean = spikes.sum(dim=1) / bucket.lengths[:, None]
                rows.append(torch.cat([torch.ones_like(last[:, :1]), mean, last], dim=1))
        return found.of_each(buckets, rows)

    def _run(self, bucket: Bucket) -> Tensor:
        """Return the spikes of all neurons, (B, T, N), as 0 and 1."""
        x = self._encoded_spikes(torch.nan_to_num(bucket.values))
        weights, inputs = (torch.from_numpy(a).to(x) for a in (self.weights_, self.inputs_))
        driven = x @ inputs
        neuron, synapse = IntegrateAndFire(), DynamicSynapse()
        spikes = torch.zeros_like(driven[:, 0])
        voltage, rest, current, u, fresh = (torch.zeros_like(spikes) for _ in range(5))
        fresh, found, kept = fresh + 1, [], math.exp(-1 / SYNAPSE)
        for t in range(x.shape[1]):
            effect, u, fresh = synapse.advance(u, fresh, spikes)
            if not self.dynamic:
                effect = synapse.use * spikes
            current = kept * current + driven[:, t] + effect @ weights
            fired, voltage, rest = neuron.advance(voltage, rest, current)
            spikes = fired.to(x)
            found.append(spikes)
        return torch.stack(found, dim=1)

    def _encoded_spikes(self, x: Tensor) -> Tensor:
        if self.encoder == "delta":
            return delta_code(x, self.threshold)
        if self.encoder == "rate":
            seed = seed_from(0 if self.random_state is None else self.random_state)
            one = torch.rand(x.shape[1:], generator=generator(seed, 1), dtype=torch.float64)
            return (one.to(x) < x.clamp(0, 1)).to(x)  # the same draws for every row
        return x

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
