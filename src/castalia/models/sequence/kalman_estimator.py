"""Kalman filter: a hidden state of numbers that moves linearly and is measured with noise."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from castalia.base import Constraint, Interval, check_parameters
from castalia.errors import InvalidData, InvalidParameter, TrainingWarning
from castalia.models.sequence.direct_sequences import (
    Bucket,
    DirectSequenceEstimator,
    Observations,
    read_observations,
)
from castalia.models.sequence.kalman_covariances import FilterTable, SmootherTable, square_root
from castalia.models.sequence.kalman_em import Recording, learn
from castalia.models.sequence.kalman_recursion import LinearGaussian
from castalia.models.sequence.kalman_smoother import (
    Filtered,
    covariances,
    kalman_filter,
    kalman_smooth,
)
from castalia.models.sequence.kalman_start import first_system
from castalia.utils.plain_torch import plain_torch
from castalia.utils.seeds import seed_from
from castalia.utils.text import plural

__all__ = ["KalmanFilter"]

LEAST = 1e-8  # of a channel's variance, for the noise of its measurement


class Numbers(Constraint):
    """An array of finite numbers, or None."""

    def rule(self) -> str:
        """Say so."""
        return "an array of finite numbers or None"

    def holds(self, value: Any) -> bool:
        """Whether numpy reads it so."""
        try:
            return value is None or bool(np.isfinite(np.asarray(value, dtype=np.float64)).all())
        except (TypeError, ValueError):
            return False


@dataclass(kw_only=True, eq=False, repr=False)
class KalmanFilter(DensityMixin, DirectSequenceEstimator):
    """Series measured with noise from a hidden state that moves linearly.

    x_t = F x_{t-1} + B u_t + q_t and y_t = H x_t + D u_t + o + r_t with normal noises q and r. For
    given matrices the filter is the exact posterior of the state; matrices that are not given are
    learnt by EM. Right for tracking and for smooth series in noise; where regimes switch, use
    ``HiddenMarkovModel``.

    Parameters
    ----------
    state
        Width N of the state.
    transition, observation
        F (N, N) and H (M, N), or None: learnt.
    process_noise, measurement_noise
        Covariances Q (N, N) of q and R (M, M) of r, or None: learnt.
    mean, covariance
        Of the first state before its input, (N,) and (N, N), or None: learnt.
    control, feedthrough
        B (N, U) and D (M, U) of the inputs, or None: learnt where ``fit`` is given inputs.
    tol
        Stop when a step of EM gains less than this in log-likelihood for each time step.
    steps
        Most steps of EM.

    Attributes
    ----------
    transition_, observation_, process_noise_, measurement_noise_ : ndarray
        F, H, Q, R.
    mean_, covariance_ : ndarray
        Of the first state.
    control_, feedthrough_ : ndarray
        B and D; without inputs they have no columns.
    offset_ : ndarray of shape (M,)
        The constant o: the means of the channels where H is learnt, else zero.
    log_likelihoods_ : list of float
        Log-likelihood for each time step, step by step of EM.
    converged_ : bool
        Whether ``tol`` was reached.

    Shapes
    ------
    X: one series (T,) or (T, M); (B, T, M); a list of arrays; or joined series with ``lengths``.
    Answers come in the same form.

    Notes
    -----
    Covariances are computed on square roots, once for all steps that share them; means by a
    parallel scan over time. NaN marks what was not measured, whole rows or single channels. A
    state is learnt up to a change of its basis. Where rows are measured in part, a learnt R is
    diagonal.

    References
    ----------
    1960, Kalman, A new approach to linear filtering and prediction problems, J. Basic Engineering
    82. 1982, Shumway, Stoffer, An approach to time series smoothing and forecasting using the EM
    algorithm.

    See Also
    --------
    castalia.LinearDynamicalSystem : from inputs to outputs.
    castalia.HiddenMarkovModel : with discrete states.

    Examples
    --------
    >>> walk = np.random.default_rng(0).normal(size=200).cumsum()
    >>> noisy = walk + 2 * np.random.default_rng(1).normal(size=200)
    >>> model = KalmanFilter(
    ...     transition=[[1.0]], observation=[[1.0]], process_noise=[[1.0]],
    ...     measurement_noise=[[4.0]], mean=[0.0], covariance=[[10.0]],
    ... ).fit(noisy)
    >>> means, covariances = model.smooth(noisy)
    >>> bool(np.square(means[:, 0] - walk).mean() < 0.4 * np.square(noisy - walk).mean())
    True
    """

    state: Annotated[int, Interval(1, whole=True)] = 1
    transition: Annotated[Any, Numbers()] = None
    observation: Annotated[Any, Numbers()] = None
    process_noise: Annotated[Any, Numbers()] = None
    measurement_noise: Annotated[Any, Numbers()] = None
    mean: Annotated[Any, Numbers()] = None
    covariance: Annotated[Any, Numbers()] = None
    control: Annotated[Any, Numbers()] = None
    feedthrough: Annotated[Any, Numbers()] = None
    tol: Annotated[float, Interval(0)] = 1e-4
    steps: Annotated[int, Interval(1, whole=True)] = 100

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        inputs: Any = None,
        lengths: Any = None,
    ) -> KalmanFilter:
        """Learn the matrices that are not given.

        Parameters
        ----------
        X
            Measured series; NaN marks what was not measured.
        y
            Not used.
        sample_weight
            Not used; repeat series that should count more often.
        inputs
            What was done to the system, in the form of X with U channels.
        lengths
            Steps of each series, where X holds several one after the other.

        Returns
        -------
        self
        """
        check_parameters(self)
        found = self._read(X, lengths, reset=True)
        self._fit_system(found, self._read_inputs(found, inputs, lengths, reset=True))
        return self

    def _fit_system(self, found: Observations, inputs: Observations | None) -> None:
        rows = np.concatenate(found.parts)
        if np.isnan(rows).all(axis=0).any():
            raise InvalidData(
                f"{type(self).__name__}: every channel must be measured somewhere; channel "
                f"{int(np.isnan(rows).all(axis=0).argmax())} never is. Drop it."
            )
        self.offset_ = (
            np.nanmean(rows, axis=0) if self.observation is None else np.zeros(rows.shape[1])
        )
        variance = np.nanvar(rows, axis=0)
        floor = LEAST * np.where(variance > 0, variance, 1.0)
        start, fixed = self._start(found, inputs)
        with plain_torch(), torch.no_grad():
            data = [r for _, r in self._recordings(found, inputs)]
            free = set(LinearGaussian._fields) - fixed
            free -= set() if inputs is not None else {"control", "feedthrough"}
            system, log_likelihoods, converged = learn(
                start, data, fixed=fixed, floor=floor, tol=self.tol, steps=self.steps if free else 1
            )
        self._keep(system)
        self.log_likelihoods_, self.converged_ = log_likelihoods, converged or not free
        if not self.converged_:
            warnings.warn(
                f"{type(self).__name__}: the log-likelihood still gained {self.tol:g} or more for "
                f"each time step after {plural(self.steps, 'step')} of EM. Raise `steps` or `tol`.",
                TrainingWarning,
                stacklevel=4,
            )

    def _start(
        self, found: Observations, inputs: Observations | None
    ) -> tuple[LinearGaussian, set[str]]:
        """Return the system to begin with, and the fields that were given."""
        n, m = self._width(), found.channels
        u = 0 if inputs is None else inputs.channels
        parts = [part - self.offset_ for part in found.parts]
        start = first_system(parts, n, u)
        shapes = {
            "transition": (n, n),
            "observation": (m, n),
            "process_noise": (n, n),
            "measurement_noise": (m, m),
            "mean": (n,),
            "covariance": (n, n),
            "control": (n, u),
            "feedthrough": (m, u),
        }
        given = {name: getattr(self, name) for name in shapes if getattr(self, name) is not None}
        arrays = {name: self._given(name, value, shapes[name]) for name, value in given.items()}
        return start._replace(**arrays), set(given)

    def _width(self) -> int:
        return self.state if self.transition is None else len(np.atleast_2d(self.transition))

    def _given(self, name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
        array = np.asarray(value, dtype=np.float64)
        if array.shape != shape:
            raise InvalidParameter(
                f"{type(self).__name__}: `{name}` must have shape {shape}, for {shape[0]} rows of "
                f"states or channels; got {array.shape}."
            )
        if name in ("process_noise", "measurement_noise", "covariance"):
            values = np.linalg.eigvalsh(0.5 * (array + array.T))
            sound = np.allclose(array, array.T) and values[0] >= -1e-9 * max(values[-1], 0)
            if not sound:
                raise InvalidParameter(
                    f"{type(self).__name__}: `{name}` must be symmetric without negative "
                    f"eigenvalues; the smallest is {values[0]:.3g}."
                )
        return array

    def _keep(self, system: LinearGaussian) -> None:
        for name, value in system._asdict().items():
            setattr(self, f"{name}_", value)

    def _system(self) -> LinearGaussian:
        return LinearGaussian(*(getattr(self, f"{name}_") for name in LinearGaussian._fields))

    # -- answers --------------------------------------------------------------------------------

    def filter(self, X: Any, *, inputs: Any = None, lengths: Any = None) -> tuple[Any, Any]:
        """Return means (T, N) and covariances (T, N, N) of the state, given X up to each step."""
        found, each, table = self._filtered(X, inputs, lengths)
        means = [one.means for _, _, one in each]
        covs = [covariances(table.covariances, one.steps) for _, _, one in each]
        buckets = [bucket for bucket, _, _ in each]
        return found.together(buckets, means), found.together(buckets, covs)

    def smooth(self, X: Any, *, inputs: Any = None, lengths: Any = None) -> tuple[Any, Any]:
        """Return means (T, N) and covariances (T, N, N) of the state, given the whole series."""
        found, each, table = self._filtered(X, inputs, lengths)
        smoother = SmootherTable(table)
        smoothed = [kalman_smooth(smoother, one) for _, _, one in each]
        covs = [covariances(smoother.covariances, one.steps) for one in smoothed]
        buckets = [bucket for bucket, _, _ in each]
        return found.together(buckets, [one.means for one in smoothed]), found.together(
            buckets, covs
        )

    def predict(self, X: Any, *, inputs: Any = None, lengths: Any = None) -> Any:
        """Return what is expected of each measurement from those before it, (T, M)."""
        found, each, _ = self._filtered(X, inputs, lengths)
        answers = [self._expected(one.predicted, r.inputs) for _, r, one in each]
        return found.together([bucket for bucket, _, _ in each], answers)

    def forecast(
        self, X: Any, steps: int = 1, *, inputs: Any = None, future: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return means (steps, M) and covariances (steps, M, M) of what follows one series.

        Parameters
        ----------
        X
            The series so far, (T,) or (T, M).
        steps
            Number of steps.
        inputs, future
            Inputs so far and of the steps to come, (T, U) and (steps, U).
        """
        found = self._read(X)
        if len(found.parts) != 1:
            raise InvalidData(f"{type(self).__name__}.forecast: X must be one series.")
        gap = np.full((steps, found.channels), np.nan)
        longer = np.vstack([found.parts[0], gap])
        joined = None
        if inputs is not None or future is not None:
            joined = np.vstack([np.reshape(a, (len(a), -1)) for a in (inputs, future)])
        _, ((_, recording, one),), table = self._filtered(longer, joined, None)
        means = self._expected(one.predicted, recording.inputs)[0, -steps:].cpu().numpy()
        states = np.stack(table.covariances)[one.steps[0, -steps:]]
        h = self.observation_
        return means, h @ states @ h.T + self.measurement_noise_

    def score_samples(self, X: Any, *, inputs: Any = None, lengths: Any = None) -> np.ndarray:
        """Return the log-likelihood of each series, (B,)."""
        found, each, _ = self._filtered(X, inputs, lengths)
        buckets = [bucket for bucket, _, _ in each]
        return found.of_each(buckets, [one.log_likelihood for _, _, one in each])

    def score(self, X: Any, y: Any = None, *, inputs: Any = None, lengths: Any = None) -> float:
        """Return the log-likelihood for each time step."""
        steps = self._read(X, lengths).steps
        return float(self.score_samples(X, inputs=inputs, lengths=lengths).sum() / steps)

    def sample(
        self, steps: int = 1, n_samples: int | None = None, *, inputs: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw a series and its states, or several; by ``random_state``.

        Parameters
        ----------
        steps
            Time steps of a series.
        n_samples
            Number of series; None: one, without the leading axis.
        inputs
            What is done to the system, (steps, U).

        Returns
        -------
        tuple
            Measurements, (T, M) or (B, T, M), and states, (T, N) or (B, T, N).
        """
        check_is_fitted(self, "transition_")
        system, b = self._system(), n_samples or 1
        random = np.random.default_rng(seed_from(self.random_state))
        u = np.zeros((steps, system.control.shape[1])) if inputs is None else np.asarray(inputs)
        roots = [square_root(a) for a in (system.covariance, system.process_noise)]
        x = system.mean + random.normal(size=(b, len(system.mean))) @ roots[0].T
        states = []
        for t in range(steps):
            if t:
                x = x @ system.transition.T + random.normal(size=x.shape) @ roots[1].T
            x = x + system.control @ u[t]
            states.append(x)
        path = np.stack(states, axis=1)  # (B, T, N)
        noise = random.normal(size=(b, steps, len(system.observation)))
        y = path @ system.observation.T + u @ system.feedthrough.T + self.offset_
        y = y + noise @ square_root(system.measurement_noise).T
        return (y, path) if n_samples else (y[0], path[0])

    def _expected(self, states: Tensor, inputs: Tensor) -> Tensor:
        """Return the measurements that states lead to."""
        h, d, offset = (
            torch.from_numpy(a).to(states)
            for a in (self.observation_, self.feedthrough_, self.offset_)
        )
        return states @ h.T + inputs @ d.T + offset

    def _filtered(
        self, X: Any, inputs: Any, lengths: Any
    ) -> tuple[Observations, list[tuple[Bucket, Recording, Filtered]], FilterTable]:
        check_is_fitted(self, "transition_")
        found = self._read(X, lengths)
        given = self._read_inputs(found, inputs, lengths)
        table = FilterTable(self._system())
        with plain_torch(), torch.no_grad():
            each = [
                (bucket, recording, kalman_filter(table, *recording))
                for bucket, recording in self._recordings(found, given)
            ]
        return found, each, table

    def _recordings(
        self, found: Observations, inputs: Observations | None
    ) -> list[tuple[Bucket, Recording]]:
        """Put series and inputs on the device, the constant taken off."""
        pairs = []
        for bucket in self._buckets(found):
            values = bucket.values - torch.from_numpy(self.offset_).to(bucket.values)
            u = values.new_zeros(*values.shape[:2], 0)
            if inputs is not None:
                parts = tuple(inputs.parts[place] for place in bucket.places)
                (beside,) = Observations(parts, "list").buckets(values.device)
                u = torch.nan_to_num(beside.values)
            pairs.append((bucket, Recording(values, u, bucket.lengths)))
        return pairs

    def _read_inputs(
        self, found: Observations, inputs: Any, lengths: Any, *, reset: bool = False
    ) -> Observations | None:
        """Check inputs against the series beside them."""
        name = type(self).__name__
        known = None if reset else self.control_.shape[1]
        if inputs is None:
            if known or (reset and (self.control is not None or self.feedthrough is not None)):
                raise InvalidData(f"{name}: `inputs` must be given, as the system has some.")
            return None
        if known == 0:
            raise InvalidData(f"{name}: `inputs` must be None; fit was given none.")
        read = read_observations(inputs, f"{name}, inputs", lengths=lengths, channels=known)
        if [len(part) for part in read.parts] != [len(part) for part in found.parts]:
            raise InvalidData(f"{name}: `inputs` must have as many steps as X in every series.")
        return read
