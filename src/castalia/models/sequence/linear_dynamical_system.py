"""Linear dynamical system: from a sequence of inputs to a sequence of outputs through a state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from castalia.base import DirectEstimator, Interval, check_parameters
from castalia.errors import InvalidData
from castalia.models.sequence.direct_sequences import Observations, read_observations, read_targets
from castalia.models.sequence.linear_dynamical_subspace import (
    Realisation,
    markov_parameters,
    realised,
    simulated,
)

__all__ = ["LinearDynamicalSystem"]


@dataclass(kw_only=True, eq=False, repr=False)
class LinearDynamicalSystem(RegressorMixin, DirectEstimator):
    """Outputs of a linear system, driven by inputs, with a hidden state.

    h_t = A h_{t-1} + B x_t and y_t = C h_t + D x_t + o, from h = 0. An autoregression on past
    outputs and inputs gives the system's answer to an impulse, C A^k B; the state is then the
    smallest that gives these answers (Ho and Kálmán). Both are closed forms. Right for linear
    plants, filters and circuits; the noise of a state is ``KalmanFilter``'s matter.

    Parameters
    ----------
    state
        Width N of the state; larger remembers more.
    lags
        Past steps in the autoregression; None: 2 N + 10, or a third of the shortest sequence.
    alpha
        Penalty of the autoregression, relative to the mean square of its inputs; larger is steadier
        in noise.

    Attributes
    ----------
    transition_, control_, observation_, feedthrough_ : ndarray
        A (N, N), B (N, U), C (M, N), D (M, U).
    offset_ : ndarray of shape (M,)
        The constant o.

    Shapes
    ------
    X: inputs, one sequence (T,) or (T, U); (B, T, U); or a list. y: outputs in the same form.

    Notes
    -----
    O(T L^2 (U + M)^2) for L lags. D is the impulse's immediate effect beyond C B, which stays 0
    unless the state is too small for it: B already acts at once. A fitted system that is unstable
    is shrunk until its spectral radius is 0.9999.

    References
    ----------
    1966, Ho, Kálmán, Effective construction of linear state-variable models from input/output
    functions, Regelungstechnik 14.

    See Also
    --------
    castalia.KalmanFilter : with noise in the state.
    castalia.EchoStateNetwork : nonlinear.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=300)
    >>> y = np.convolve(x, 0.8 ** np.arange(60))[:300]  # h = 0.8 h + x
    >>> model = LinearDynamicalSystem(state=1).fit(x, y)
    >>> model.transition_.round(6).tolist(), model.impulse_response(3)[:, 0, 0].round(2).tolist()
    ([[0.8]], [1.0, 0.8, 0.64])
    """

    state: Annotated[int, Interval(1, whole=True)] = 2
    lags: Annotated[int | None, Interval(1, whole=True, optional=True)] = None
    alpha: Annotated[float, Interval(0)] = 1e-8

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, lengths: Any = None
    ) -> LinearDynamicalSystem:
        """Identify the system.

        Parameters
        ----------
        X
            Inputs.
        y
            Outputs, as many steps.
        sample_weight
            Not used; repeat sequences that should count more often.
        lengths
            Steps of each sequence, where X holds several one after the other.

        Returns
        -------
        self
        """
        check_parameters(self)
        name = type(self).__name__
        found = read_observations(X, name, lengths=lengths)
        outputs = read_targets(y, found, name, lengths=lengths)
        self.n_features_in_ = found.channels
        self._identify(found, outputs)
        return self

    def _identify(self, found: Observations, outputs: Observations) -> None:
        shortest = min(map(len, found.parts))
        lags = self.lags or max(1, min(2 * self.state + 10, shortest // 3))
        if shortest <= lags:
            raise InvalidData(
                f"LinearDynamicalSystem: sequences must have more than {lags} steps, the lags of "
                f"the autoregression; got {shortest}. Lower `lags`."
            )
        offset, answers = markov_parameters(
            found.parts, outputs.parts, lags, self.alpha, 2 * self.state + 2
        )
        system = realised(answers, self.state)
        self.transition_, self.control_ = system.transition, system.control
        self.observation_, self.feedthrough_ = system.observation, system.feedthrough
        self.offset_ = offset
        self.flat_ = bool(outputs.flat)

    def predict(self, X: Any, *, lengths: Any = None) -> Any:
        """Return the outputs that inputs lead to, in the form of X."""
        check_is_fitted(self, "transition_")
        found = read_observations(
            X, type(self).__name__, lengths=lengths, channels=self.n_features_in_
        )
        buckets = found.buckets(self._tensor(found.parts[0][:1]).device)
        answers = [simulated(self._system(), self.offset_, b.values) for b in buckets]
        joined = found.together(buckets, answers)
        if not self.flat_:
            return joined
        return [a[:, 0] for a in joined] if found.form == "list" else joined[..., 0]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R² over all steps of all sequences."""
        found = read_observations(X, type(self).__name__)
        true = np.concatenate(read_targets(y, found, type(self).__name__).parts)
        guess = read_targets(self.predict(X), found, type(self).__name__)
        return float(r2_score(true, np.concatenate(guess.parts)))

    def impulse_response(self, steps: int) -> np.ndarray:
        """Return the outputs after an impulse, (steps, M, U): C A^k B, and D at once."""
        check_is_fitted(self, "transition_")
        state, found = self.control_, []
        for _ in range(steps):
            found.append(self.observation_ @ state)
            state = self.transition_ @ state
        answers = np.stack(found)
        answers[0] += self.feedthrough_
        return answers

    def _system(self) -> Realisation:
        return Realisation(self.transition_, self.control_, self.observation_, self.feedthrough_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags
