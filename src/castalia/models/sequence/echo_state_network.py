"""Echo state networks: a fixed random recurrent network and a linear readout."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from castalia.base import DirectEstimator, Interval, OneOf, check_parameters
from castalia.base.input_checks import check_target
from castalia.errors import CastaliaWarning, InvalidData, InvalidParameter
from castalia.models.sequence.direct_sequences import (
    Bucket,
    SequenceSet,
    read_sequences,
    read_targets,
)
from castalia.models.sequence.echo_state_readout import (
    RidgeSums,
    recursive_least_squares,
    ridge,
)
from castalia.models.sequence.reservoir import (
    ACTIVATIONS,
    TOPOLOGIES,
    Reservoir,
    random_reservoir,
)
from castalia.models.sequence.reservoir_plasticity import intrinsic_plasticity
from castalia.utils.plain_torch import plain_torch
from castalia.utils.seeds import derive, generator, seed_from

__all__ = ["EchoStateClassifier", "EchoStateNetwork"]


@dataclass(kw_only=True, eq=False, repr=False)
class EchoStateBase(DirectEstimator):
    """Base of estimators on reservoirs: how reservoirs are drawn, kept and run.

    Parameters
    ----------
    units
        Units of each reservoir; more remember more and cost more.
    depth
        Reservoirs on top of each other; the readout sees the states of all.
    bidirectional
        Whether a second stack reads from the end.
    spectral_radius
        Of the recurrent weights; larger remembers longer. Above 1 it may not forget where it began.
    input_scale, bias_scale
        Weights of inputs and biases are uniform between minus and plus these.
    connections
        Mean number of units that a unit receives.
    topology
        ``"random"``, ``"ring"`` or ``"orthogonal"``.
    leak
        Share of the new state in each step; smaller is slower.
    activation
        ``"tanh"``, ``"sigmoid"`` or ``"identity"``.
    plasticity
        Passes of intrinsic plasticity over the training sequences before the readout is fitted.
    plasticity_target
        Mean of sigmoid units, or deviation of tanh units, that it aims at.
    alpha
        Penalty of the readout; larger is steadier in noise.
    """

    units: Annotated[int, Interval(1, whole=True)] = 200
    depth: Annotated[int, Interval(1, whole=True)] = 1
    bidirectional: Annotated[bool, OneOf(True, False)] = False
    spectral_radius: Annotated[float, Interval(0)] = 0.9
    input_scale: Annotated[float, Interval(0)] = 1.0
    bias_scale: Annotated[float, Interval(0)] = 0.5
    connections: Annotated[int, Interval(1, whole=True)] = 10
    topology: Annotated[str, OneOf(*TOPOLOGIES)] = "random"
    leak: Annotated[float, Interval(0, 1, closed="right")] = 1.0
    activation: Annotated[str, OneOf(*ACTIVATIONS)] = "tanh"
    plasticity: Annotated[int, Interval(0, whole=True)] = 0
    plasticity_target: Annotated[float, Interval(0, closed="neither")] = 0.2
    alpha: Annotated[float, Interval(0)] = 1e-6

    def _draw(self, inputs: int, feedback: float = 0.0, outputs: int = 0) -> list[Reservoir]:
        """Draw all reservoirs, the forward stack before the backward one."""
        if self.spectral_radius > 1:
            warnings.warn(
                f"{type(self).__name__}: `spectral_radius` is {self.spectral_radius:g}; above 1 a "
                "reservoir may keep or amplify its first state. Check it with "
                "`echo_state_property`.",
                CastaliaWarning,
                stacklevel=4,
            )
        seed = seed_from(self.random_state)
        return [
            random_reservoir(
                self.units,
                self.units if layer else inputs,
                radius=self.spectral_radius,
                scale=self.input_scale,
                bias=self.bias_scale,
                connections=self.connections,
                feedback=feedback,
                outputs=0 if layer else outputs,
                topology=self.topology,
                leak=self.leak,
                activation=self.activation,
                seed=derive(seed, direction, layer),
            )
            for direction in range(2 if self.bidirectional else 1)
            for layer in range(self.depth)
        ]

    def _adapted(self, reservoirs: list[Reservoir], found: SequenceSet) -> list[Reservoir]:
        """Let intrinsic plasticity adapt each reservoir to what drives it."""
        if not self.plasticity:
            return reservoirs
        adapted: list[Reservoir] = []
        for number, reservoir in enumerate(reservoirs):
            for bucket in found.buckets():
                x = torch.nan_to_num(bucket.values)
                below = adapted[number - number % self.depth :] if number % self.depth else []
                for lower in below:
                    x = lower.run(x)
                reservoir = intrinsic_plasticity(
                    reservoir, x, target=self.plasticity_target, epochs=self.plasticity
                )
            adapted.append(reservoir)
        return adapted

    def _keep(self, reservoirs: list[Reservoir]) -> None:
        """Keep weights as arrays: what is saved is data."""
        parts: dict[str, list[np.ndarray]] = {}
        for reservoir in reservoirs:
            w = reservoir.weights
            sparse = {"data": w.data, "indices": w.indices, "indptr": w.indptr}
            dense = ("inputs", "bias", "feedback", "gain", "threshold")
            for name, array in {**sparse, **{n: getattr(reservoir, n) for n in dense}}.items():
                parts.setdefault(name, []).append(np.asarray(array))
        self.reservoirs_ = parts

    @property
    def _reservoirs(self) -> list[Reservoir]:
        kept, n = self.reservoirs_, self.units
        return [
            Reservoir(
                sp.csr_array((data, indices, indptr), shape=(n, n)),
                inputs,
                bias,
                feedback,
                gain,
                threshold,
                leak=self.leak,
                activation=self.activation,
            )
            for data, indices, indptr, inputs, bias, feedback, gain, threshold in zip(
                *kept.values(), strict=True
            )
        ]

    def reservoir(self, number: int = 0) -> Reservoir:
        """Return a fitted reservoir, for ``memory_capacity`` or ``echo_state_property``."""
        check_is_fitted(self, "reservoirs_")
        return self._reservoirs[number]

    def _states(self, bucket: Bucket, fed: Tensor | None = None, noise: float = 0.0) -> Tensor:
        """Return the states of all reservoirs side by side, (B, T, depth N directions)."""
        x, found = torch.nan_to_num(bucket.values), []
        reservoirs = self._reservoirs
        for direction in range(2 if self.bidirectional else 1):
            part = _reversed(x, bucket.lengths) if direction else x
            stack = []
            for layer in range(self.depth):
                reservoir = reservoirs[direction * self.depth + layer]
                shaken = self._noise(part, noise, layer) if noise else None
                part = reservoir.run(part, fed=None if layer else fed, noise=shaken)
                stack.append(part)
            joined = torch.cat(stack, dim=2) if len(stack) > 1 else stack[0]
            found.append(_reversed(joined, bucket.lengths) if direction else joined)
        return torch.cat(found, dim=2) if len(found) > 1 else found[0]

    def _noise(self, like: Tensor, noise: float, layer: int) -> Tensor:
        random = generator(seed_from(self.random_state), 2**20, layer)
        shape = (*like.shape[:2], self.units)
        return (noise * torch.randn(shape, generator=random, dtype=torch.float64)).to(like.device)


def _reversed(x: Tensor, lengths: Tensor) -> Tensor:
    """Return sequences (B, T, D) from their ends; padding stays where it is."""
    steps = torch.arange(x.shape[1], device=x.device)
    back = torch.where(steps < lengths[:, None], lengths[:, None] - 1 - steps, steps)
    return x.gather(1, back[..., None].expand_as(x))


@dataclass(kw_only=True, eq=False, repr=False)
class EchoStateNetwork(RegressorMixin, EchoStateBase):
    """Reservoir of random recurrent units with a linear readout, for outputs of every step.

    h_t = (1 - a) h_{t-1} + a tanh(U x_t + W h_{t-1}) with fixed random U and W; y_t = V [1, x_t,
    h_t] by ridge regression in closed form. Right for dynamics that forget, fitted in seconds;
    where memory must be learnt, use a gated network.

    Parameters
    ----------
    feedback
        Weights from the outputs back into the reservoir are uniform between minus and plus this; 0
        for none. In ``fit`` the targets are fed back, later the network's own outputs.
    noise
        Deviation of noise that is added to states in ``fit``; it keeps feedback stable.
    washout
        First steps of each sequence that the readout is not fitted on, at most a quarter of it.
        Answers in as many first steps of other sequences are then not to be trusted.
    solver
        ``"ridge"``, or ``"rls"``: recursive least squares, step by step.
    forget
        Of ``"rls"``: weight of a step relative to the next; below 1 the past is forgotten.

    Attributes
    ----------
    reservoirs_ : dict
        Weights of the reservoirs.
    coef_ : ndarray of shape (F, O)
        Readout of a constant, the inputs and the states.
    spread_ : ndarray of shape (F, F)
        Of ``"rls"``: the inverse of the weighted sum of squares so far.

    Shapes
    ------
    X: one sequence (T,) or (T, D); (B, T, D); a list of arrays. y: (T,), (T, O) … in the same form.

    Notes
    -----
    A step costs O(N (C + D)) for C connections, the readout O(T N^2). States and readout are
    float64. With ``solver="rls"``, ``partial_fit`` goes on where ``fit`` ended.

    References
    ----------
    2001, Jaeger, The echo state approach to analysing and training recurrent neural networks, GMD
    148. 2012, Lukoševičius, A practical guide to applying echo state networks.

    See Also
    --------
    castalia.LinearDynamicalSystem : linear, with a state that is identified.
    castalia.EchoStateClassifier : one class a sequence.

    Examples
    --------
    >>> x = np.random.default_rng(0).uniform(-1, 1, 600)
    >>> y = np.roll(x, 3)  # the input of three steps ago
    >>> model = EchoStateNetwork(units=100, random_state=0).fit(x[:400], y[:400])
    >>> model.score(x[400:], y[400:]) > 0.9
    True
    """

    feedback: Annotated[float, Interval(0)] = 0.0
    noise: Annotated[float, Interval(0)] = 0.0
    washout: Annotated[int, Interval(0, whole=True)] = 0
    solver: Annotated[str, OneOf("ridge", "rls")] = "ridge"
    forget: Annotated[float, Interval(0, 1, closed="right")] = 1.0

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, lengths: Any = None
    ) -> EchoStateNetwork:
        """Draw the reservoirs and fit the readout.

        Parameters
        ----------
        X
            Inputs.
        y
            Outputs of every step.
        sample_weight
            Not used; repeat sequences that should count more often.
        lengths
            Steps of each sequence, where X holds several one after the other.

        Returns
        -------
        self
        """
        check_parameters(self)
        if self.feedback and self.bidirectional:
            raise InvalidData(
                "EchoStateNetwork: `feedback` must be 0 for a bidirectional network, which has no "
                "output of the step before."
            )
        found = read_sequences(X, type(self).__name__, lengths=lengths)
        targets = read_targets(y, found, type(self).__name__, lengths=lengths)
        self.n_features_in_, self.flat_ = found.channels, targets.flat
        with plain_torch(), torch.no_grad():
            drawn = self._draw(found.channels, self.feedback, targets.channels)
            self._keep(self._adapted(drawn, found))
            self._read_out(found, targets)
        return self

    def partial_fit(self, X: Any, y: Any) -> EchoStateNetwork:
        """Go on with the readout by recursive least squares; reservoirs begin at zero."""
        if self.solver != "rls":
            raise InvalidParameter(
                "EchoStateNetwork.partial_fit: `solver` must be 'rls', which goes step by step; "
                f"got {self.solver!r}."
            )
        if not hasattr(self, "coef_"):
            return self.fit(X, y)
        found = read_sequences(X, type(self).__name__, channels=self.n_features_in_)
        targets = read_targets(y, found, type(self).__name__)
        with plain_torch(), torch.no_grad():
            self._online(found, targets)
        return self

    def _read_out(self, found: SequenceSet, targets: SequenceSet) -> None:
        if self.solver == "ridge":
            parts = [RidgeSums.of(z, y) for z, y in self._rows(found, targets)]
            total = parts[0]
            for more in parts[1:]:
                total = total + more
            self.coef_ = ridge(total, self.alpha)
            return
        width = self._width()
        self.coef_ = np.zeros((width, targets.channels))
        self.spread_ = np.eye(width) / max(self.alpha, 1e-12)
        self._online(found, targets)

    def _online(self, found: SequenceSet, targets: SequenceSet) -> None:
        for z, y in self._rows(found, targets):
            weights, spread = (torch.from_numpy(a).to(z) for a in (self.coef_, self.spread_))
            weights, spread = recursive_least_squares(z, y, weights, spread, self.forget)
            self.coef_, self.spread_ = weights.cpu().numpy(), spread.cpu().numpy()

    def _width(self) -> int:
        directions = 2 if self.bidirectional else 1
        return 1 + self.n_features_in_ + self.units * self.depth * directions

    def _rows(self, found: SequenceSet, targets: SequenceSet) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield features and targets of the steps after the washout, bucket by bucket."""
        for bucket in self._on_device(found):
            parts = tuple(targets.parts[place] for place in bucket.places)
            (beside,) = SequenceSet(parts, "list").buckets(bucket.values.device)
            fed = _delayed(torch.nan_to_num(beside.values)) if self.feedback else None
            features = _features(bucket.values, self._states(bucket, fed, self.noise))
            drop = (bucket.lengths // 4).clamp_max(self.washout)
            steps = torch.arange(features.shape[1], device=features.device)
            used = bucket.mask & (steps >= drop[:, None])
            yield features[used], beside.values[used]

    def _on_device(self, found: SequenceSet) -> list[Bucket]:
        return found.buckets(self._tensor(found.parts[0][:1]).device)

    # -- answers --------------------------------------------------------------------------------

    def predict(self, X: Any, *, lengths: Any = None) -> Any:
        """Return the outputs of every step, in the form of X."""
        check_is_fitted(self, "coef_")
        found = read_sequences(
            X, type(self).__name__, lengths=lengths, channels=self.n_features_in_
        )
        with plain_torch(), torch.no_grad():
            buckets = self._on_device(found)
            answers = [self._outputs(bucket) for bucket in buckets]
        return self._shaped(found.together(buckets, answers), found.form)

    def _outputs(self, bucket: Bucket) -> Tensor:
        weights = torch.from_numpy(self.coef_).to(bucket.values)
        if not self.feedback:
            return _features(bucket.values, self._states(bucket)) @ weights
        start = _Running(self, bucket.values.device, len(bucket.values))
        x = torch.nan_to_num(bucket.values)
        return torch.stack([start.step(x[:, t]) for t in range(x.shape[1])], dim=1)

    def generate(self, steps: int, X: Any, y: Any = None, *, future: Any = None) -> np.ndarray:
        """Return how the outputs go on by themselves, (steps, O), after one sequence.

        Parameters
        ----------
        steps
            Number of steps.
        X
            Sequence that brings the reservoir into its state, (T,) or (T, D).
        y
            Its outputs, needed where they are fed back.
        future
            Inputs of the steps to come, (steps, D); None: the outputs are the next inputs, for
            networks that foretell their input.
        """
        check_is_fitted(self, "coef_")
        found = read_sequences(X, type(self).__name__, channels=self.n_features_in_)
        if len(found.parts) != 1 or self.bidirectional:
            raise InvalidData(
                "EchoStateNetwork.generate: X must be one sequence, and the network must read "
                "forwards only."
            )
        outputs = self.coef_.shape[1]
        if future is None and outputs != self.n_features_in_:
            raise InvalidData(
                f"EchoStateNetwork.generate: `future` must be given, as {outputs} outputs are no "
                f"next input of {self.n_features_in_} channels."
            )
        with plain_torch(), torch.no_grad():
            (bucket,) = self._on_device(found)
            run = _Running(self, bucket.values.device, 1)
            forced = None if y is None else read_targets(y, found, type(self).__name__).parts[0]
            for t, row in enumerate(bucket.values[0]):
                run.step(row[None])
                if forced is not None:
                    run.output = torch.from_numpy(forced[t])[None].to(row)
            given = None if future is None else np.reshape(future, (steps, self.n_features_in_))
            made = [run.output[0]] if given is None else []  # the first output is the next input
            for t in range(steps - len(made)):
                x = run.output if given is None else torch.from_numpy(given[t])[None].to(row)
                made.append(run.step(x.double())[0])
        answer = torch.stack(made).cpu().numpy()
        return answer[:, 0] if self.flat_ else answer

    def _shaped(self, answer: Any, form: str) -> Any:
        if not self.flat_:
            return answer
        return [part[:, 0] for part in answer] if form == "list" else answer[..., 0]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R² over all steps of all sequences."""
        found = read_sequences(X, type(self).__name__)
        true = np.concatenate(read_targets(y, found, type(self).__name__).parts)
        guess = read_targets(self.predict(X), found, type(self).__name__)
        return float(r2_score(true, np.concatenate(guess.parts)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags


class _Running:
    """A network going on step by step: states of its reservoirs and its last output."""

    def __init__(self, model: EchoStateNetwork, device: torch.device, rows: int) -> None:
        self.reservoirs = model._reservoirs[: model.depth]
        self.steppers = [reservoir.stepper(device) for reservoir in self.reservoirs]
        self.weights = torch.from_numpy(model.coef_).to(device)
        shape = rows, model.units
        self.states = [
            torch.zeros(shape, dtype=torch.float64, device=device) for _ in self.steppers
        ]
        self.output = torch.zeros(rows, model.coef_.shape[1], dtype=torch.float64, device=device)
        self.fed = model.feedback > 0

    def step(self, x: Tensor) -> Tensor:
        """Take one input, (B, D); return the output, (B, O)."""
        below, layers = x, zip(self.reservoirs, self.steppers, strict=True)
        for layer, (reservoir, step) in enumerate(layers):
            drive = reservoir.drive(below, self.output if self.fed and not layer else None)
            self.states[layer] = step(drive, self.states[layer])
            below = self.states[layer]
        one = torch.ones_like(x[:, :1])
        self.output = torch.cat([one, x, *self.states], dim=1) @ self.weights
        return self.output


def _features(x: Tensor, states: Tensor) -> Tensor:
    """Return a constant, inputs and states of each step, (B, T, F)."""
    return torch.cat([torch.ones_like(states[..., :1]), torch.nan_to_num(x), states], dim=2)


def _delayed(y: Tensor) -> Tensor:
    """Return the outputs of the step before, zero before the first."""
    return torch.cat([torch.zeros_like(y[:, :1]), y[:, :-1]], dim=1)


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
        found = read_sequences(X, type(self).__name__)
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
        self.coef_ = ridge(RidgeSums.of(z * root, signs * root), self.alpha)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the readout of each class, (B, K); of two classes that of the second, (B,)."""
        check_is_fitted(self, "coef_")
        found = read_sequences(X, type(self).__name__, channels=self.n_features_in_)
        with plain_torch(), torch.no_grad():
            outputs = self._pooled(found) @ self.coef_
        return outputs if len(self.classes_) > 2 else outputs[:, 1]

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each sequence, (B,)."""
        outputs = self.decision_function(X)
        best = outputs.argmax(axis=1) if outputs.ndim > 1 else (outputs > 0).astype(int)
        return self.classes_[best]

    def _pooled(self, found: SequenceSet) -> np.ndarray:
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
