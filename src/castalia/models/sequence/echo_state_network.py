"""Echo state network: a fixed random recurrent network and a linear readout of every step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from castalia.base import Interval, OneOf, check_parameters
from castalia.errors import InvalidData, InvalidParameter
from castalia.models.sequence.direct_sequences import (
    Bucket,
    Observations,
    read_observations,
    read_targets,
)
from castalia.models.sequence.echo_state_base import EchoStateBase
from castalia.models.sequence.echo_state_readout import (
    RidgeSums,
    recursive_least_squares,
    ridge,
)
from castalia.utils.plain_torch import plain_torch

__all__ = ["EchoStateNetwork"]


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
        found = read_observations(X, type(self).__name__, lengths=lengths)
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
        found = read_observations(X, type(self).__name__, channels=self.n_features_in_)
        targets = read_targets(y, found, type(self).__name__)
        with plain_torch(), torch.no_grad():
            self._online(found, targets)
        return self

    def _read_out(self, found: Observations, targets: Observations) -> None:
        if self.solver == "ridge":
            parts = [RidgeSums.of(features, y) for features, y in self._rows(found, targets)]
            total = parts[0]
            for more in parts[1:]:
                total = total + more
            self.coef_ = ridge(total, self.alpha)
            return
        width = self._width()
        self.coef_ = np.zeros((width, targets.channels))
        self.spread_ = np.eye(width) / max(self.alpha, 1e-12)
        self._online(found, targets)

    def _online(self, found: Observations, targets: Observations) -> None:
        for features, y in self._rows(found, targets):
            z = torch.cat(features, dim=1)
            weights, spread = (torch.from_numpy(a).to(z) for a in (self.coef_, self.spread_))
            weights, spread = recursive_least_squares(z, y, weights, spread, self.forget)
            self.coef_, self.spread_ = weights.cpu().numpy(), spread.cpu().numpy()

    def _width(self) -> int:
        directions = 2 if self.bidirectional else 1
        return 1 + self.n_features_in_ + self.units * self.depth * directions

    def _rows(
        self, found: Observations, targets: Observations
    ) -> Iterator[tuple[tuple[Tensor, Tensor], Tensor]]:
        """Yield inputs, states and targets of the steps after the washout, bucket by bucket."""
        for bucket in self._on_device(found):
            parts = tuple(targets.parts[place] for place in bucket.places)
            (beside,) = Observations(parts, "list").buckets(bucket.values.device)
            fed = _delayed(torch.nan_to_num(beside.values)) if self.feedback else None
            given, states = _given(bucket.values), self._states(bucket, fed, self.noise)
            drop = (bucket.lengths // 4).clamp_max(self.washout)
            if len(states) == 1:  # a view is enough
                some = slice(int(drop), None)
                yield (given[0, some], states[0, some]), beside.values[0, some]
                continue
            steps = torch.arange(states.shape[1], device=states.device)
            used = bucket.mask & (steps >= drop[:, None])
            yield (given[used], states[used]), beside.values[used]

    def _on_device(self, found: Observations) -> list[Bucket]:
        return found.buckets(self._tensor(found.parts[0][:1]).device)

    # -- answers --------------------------------------------------------------------------------

    def predict(self, X: Any, *, lengths: Any = None) -> Any:
        """Return the outputs of every step, in the form of X."""
        check_is_fitted(self, "coef_")
        found = read_observations(
            X, type(self).__name__, lengths=lengths, channels=self.n_features_in_
        )
        with plain_torch(), torch.no_grad():
            buckets = self._on_device(found)
            answers = [self._outputs(bucket) for bucket in buckets]
        return self._shaped(found.together(buckets, answers), found.form)

    def _outputs(self, bucket: Bucket) -> Tensor:
        weights = torch.from_numpy(self.coef_).to(bucket.values)
        if not self.feedback:
            given = _given(bucket.values)
            first, rest = weights.split([given.shape[2], len(weights) - given.shape[2]])
            return given @ first + self._states(bucket) @ rest
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
        found = read_observations(X, type(self).__name__, channels=self.n_features_in_)
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
        found = read_observations(X, type(self).__name__)
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
        shape = model.units, rows
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
            self.states[layer] = step(drive.T, self.states[layer])
            below = self.states[layer].T
        one, states = torch.ones_like(x[:, :1]), [state.T for state in self.states]
        self.output = torch.cat([one, x, *states], dim=1) @ self.weights
        return self.output


def _given(x: Tensor) -> Tensor:
    """Return a constant and the inputs of each step, (B, T, 1 + D)."""
    return torch.cat([torch.ones_like(x[..., :1]), torch.nan_to_num(x)], dim=2)


def _delayed(y: Tensor) -> Tensor:
    """Return the outputs of the step before, zero before the first."""
    return torch.cat([torch.zeros_like(y[:, :1]), y[:, :-1]], dim=1)
