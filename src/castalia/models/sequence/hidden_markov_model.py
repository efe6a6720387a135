"""Hidden Markov model: a chain of hidden states, each with its own distribution of observations."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from castalia.base import Constraint, Interval, OneOf, check_parameters
from castalia.errors import InvalidData, InvalidParameter, TrainingWarning
from castalia.models.sequence.direct_sequences import (
    Bucket,
    DirectSequenceEstimator,
    Observations,
    is_list_of_arrays,
)
from castalia.models.sequence.hidden_markov_em import (
    ChainModel,
    Fitted,
    Laid,
    expectation,
    maximise,
)
from castalia.models.sequence.hidden_markov_emissions import from_arrays
from castalia.models.sequence.hidden_markov_recursion import forward
from castalia.models.sequence.hidden_markov_scan import Lanes, possible, scan, viterbi_scan
from castalia.models.sequence.hidden_markov_start import first_model
from castalia.utils.plain_torch import plain_torch
from castalia.utils.seeds import derive, generator, seed_from
from castalia.utils.text import plural

__all__ = ["HiddenMarkovModel"]

EMISSIONS = ("gaussian", "mixture", "discrete")


class StateCounts(Constraint):
    """A number of states, or several to choose from."""

    def rule(self) -> str:
        """Say so."""
        return "a whole number of at least 1, or a tuple of such"

    def holds(self, value: Any) -> bool:
        """Whether all are whole and positive."""
        counts = value if isinstance(value, tuple | list) and value else (value,)
        return all(Interval(1, whole=True).holds(count) for count in counts)


@dataclass(kw_only=True, eq=False, repr=False)
class HiddenMarkovModel(DensityMixin, DirectSequenceEstimator):
    """Sequences from a chain of hidden states, each with its own distribution of observations.

    p(x, z) = p(z_0) p(x_0 | z_0) prod_t p(z_t | z_{t-1}) p(x_t | z_t) with discrete states z.
    Baum–Welch raises the likelihood in every step. Right for regimes that last and return (sleep
    stages, gestures, market phases); where the hidden state is a number, use ``KalmanFilter``.

    Parameters
    ----------
    states
        Number K of states, or several: the one of lowest BIC is kept.
    emission
        ``"gaussian"``, ``"mixture"`` of normal distributions, or ``"discrete"`` symbols.
    covariance
        ``"diag"``: channels are independent in a state; ``"full"``: each state has a matrix.
    components
        Components of each state's mixture.
    restarts
        Number of beginnings; the result of highest likelihood is kept.
    reg_covar
        Share of a channel's variance that is added to it in every state; larger keeps states from
        collapsing onto one value.
    tol
        Stop when a step gains less than this in log-likelihood for each time step.
    steps
        Most steps of one run.
    warm_start
        Whether to begin at the model of the last fit.

    Attributes
    ----------
    start_ : ndarray of shape (K,)
        Probabilities of the first state.
    transition_ : ndarray of shape (K, K)
        Probabilities of moves, from the row's state to the column's.
    means_, covariances_ : ndarray
        Of ``"gaussian"``: (K, D), and (K, D) or (K, D, D); of ``"mixture"``: (K, M, …).
    weights_ : ndarray of shape (K, M)
        Shares of a mixture's components.
    probabilities_ : ndarray of shape (K, V)
        Of ``"discrete"``: probabilities of ``symbols_``.
    log_likelihoods_ : list of float
        Log-likelihood for each time step, step by step of the run that was kept.
    converged_ : bool
        Whether ``tol`` was reached.
    bics_ : dict
        BIC of every number of states that was tried.

    Shapes
    ------
    X: one sequence (T,) or (T, D); (B, T, D); a list of arrays; or joined sequences with
    ``lengths``. Answers come in the same form.

    Notes
    -----
    A step costs O(T K (K + D)). Time is cut into chunks that are worked through at the same time
    (``hidden_markov_scan``), also of one long sequence, on a CPU or a GPU. NaN marks missing
    observations, whole or single channels. A move that never happens keeps a probability of 1e-20;
    one given as 0 stays 0. Chains with zeros are computed step by step in log space.

    References
    ----------
    1989, Rabiner, A tutorial on hidden Markov models and selected applications in speech
    recognition, Proc. IEEE 77.

    See Also
    --------
    castalia.GaussianMixture : without memory.
    castalia.KalmanFilter : with a state of numbers.

    Examples
    --------
    >>> X = np.repeat([0.0, 5.0, 0.0, 5.0], 25) + np.random.default_rng(0).normal(size=100)
    >>> model = HiddenMarkovModel(states=2, random_state=0).fit(X)
    >>> path = model.predict(X)
    >>> sorted(model.means_[:, 0].round().tolist()), bool(path[0] == path[30])
    ([0.0, 5.0], False)
    """

    states: Annotated[int | tuple[int, ...], StateCounts()] = 2
    emission: Annotated[str, OneOf(*EMISSIONS)] = "gaussian"
    covariance: Annotated[str, OneOf("diag", "full")] = "diag"
    components: Annotated[int, Interval(1, whole=True)] = 2
    restarts: Annotated[int, Interval(1, whole=True)] = 1
    reg_covar: Annotated[float, Interval(0)] = 1e-4
    tol: Annotated[float, Interval(0)] = 1e-4
    steps: Annotated[int, Interval(1, whole=True)] = 100
    warm_start: Annotated[bool, OneOf(True, False)] = False

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, lengths: Any = None
    ) -> HiddenMarkovModel:
        """Fit on sequences.

        Parameters
        ----------
        X
            Sequences; NaN marks missing observations.
        y
            Not used.
        sample_weight
            How often each sequence counts.
        lengths
            Steps of each sequence, where X holds several one after the other.

        Returns
        -------
        self
        """
        check_parameters(self)
        found = self._read(self._coded(X, reset=True), lengths, reset=True)
        with plain_torch():
            self._fit(found, sample_weight)
        return self

    def _fit(self, found: Observations, weight: Any) -> None:
        buckets = self._buckets(found)
        weights = self._sequence_weights(buckets, len(found.parts), weight)
        data = [Laid(*pair) for pair in zip(buckets, weights, strict=True)]
        rows = np.concatenate(found.parts)
        rows = rows[~np.isnan(rows).any(axis=1)]
        counts = self.states if isinstance(self.states, tuple | list) else (self.states,)
        self._enough(rows, max(counts))
        self.bics_ = {}
        tried = []
        for states in counts:
            best = self._best(rows, data, states)
            log_likelihood = sum(
                float(expectation(best.model, one).log_likelihood @ one.weight) for one in data
            )
            self.bics_[int(states)] = _bic(best.model, log_likelihood, found.steps)
            tried.append(best)
        self._keep(tried[int(np.argmin(list(self.bics_.values())))])

    def _best(self, rows: np.ndarray, data: list[Laid], states: int) -> Fitted:
        """Return the likeliest of all runs."""
        device = data[0].inside.device
        floor = torch.from_numpy(self.reg_covar * _variance(rows)).to(device)
        if self.warm_start and hasattr(self, "transition_") and len(self.start_) == states:
            return self._run(self._model(device), data, floor)
        seed = seed_from(self.random_state)
        found = []
        for run in range(self.restarts):
            first = first_model(
                rows,
                states,
                self.emission,
                full=self.covariance == "full",
                components=self.components,
                seed=derive(seed, states, run),
            )
            found.append(self._run(_moved(first, device), data, floor))
        return max(found, key=lambda run: run.log_likelihoods[-1])

    def _run(self, first: ChainModel, data: list[Laid], floor: Tensor) -> Fitted:
        return maximise(first, data, floor=floor, tol=self.tol, steps=self.steps)

    def _enough(self, rows: np.ndarray, states: int) -> None:
        """Refuse more states than there are different observations."""
        some = np.unique(rows[: 100 * states], axis=0)
        distinct = len(some) if len(some) >= states else len(np.unique(rows, axis=0))
        if distinct < states and (self.emission != "discrete" or not distinct):
            raise InvalidData(
                f"HiddenMarkovModel: `states` must be at most {distinct}, the number of distinct "
                f"complete observations; got {states}. Lower it."
            )

    def _keep(self, best: Fitted) -> None:
        if not best.converged:
            warnings.warn(
                f"HiddenMarkovModel: the log-likelihood still gained {self.tol:g} or more for each "
                f"time step after {plural(self.steps, 'step')}. Raise `steps` or `tol`.",
                TrainingWarning,
                stacklevel=4,
            )
        start, move, emission = best.model
        self._forget()
        self.start_, self.transition_ = start.cpu().numpy(), move.cpu().numpy()
        for name, value in emission.arrays().items():
            setattr(self, name, value.cpu().numpy())
        self.log_likelihoods_, self.converged_ = best.log_likelihoods, best.converged

    def _forget(self) -> None:
        """Drop the emissions of an earlier fit, perhaps of another kind."""
        for name in ("means_", "covariances_", "weights_", "probabilities_"):
            self.__dict__.pop(name, None)

    def given(
        self,
        *,
        start: Any,
        transition: Any,
        means: Any = None,
        covariances: Any = None,
        weights: Any = None,
        probabilities: Any = None,
        symbols: Any = None,
    ) -> HiddenMarkovModel:
        """Take known parameters instead of fitting; shapes are those of the attributes.

        Examples
        --------
        >>> model = HiddenMarkovModel(emission="discrete").given(
        ...     start=[0.6, 0.4],
        ...     transition=[[0.7, 0.3], [0.4, 0.6]],
        ...     probabilities=[[0.5, 0.4, 0.1], [0.1, 0.3, 0.6]],
        ... )
        >>> model.predict([0, 1, 2])
        array([0, 0, 1])
        """
        check_parameters(self)
        self._forget()
        chain = {"start_": start, "transition_": transition, "probabilities_": probabilities}
        rest = {"means_": means, "covariances_": covariances, "weights_": weights}
        for name, value in {**chain, **rest}.items():
            if value is not None:
                setattr(self, name, np.asarray(value, dtype=np.float64))
        k = len(self.start_)
        for name in ("start_", "transition_", "probabilities_", "weights_"):
            _shares(getattr(self, name, None), name, k)
        self.n_features_in_ = 1 if means is None else self.means_.shape[-1]
        if probabilities is not None:
            n = self.probabilities_.shape[1]
            self.symbols_ = np.arange(n) if symbols is None else np.asarray(symbols)
        return self

    # -- answers --------------------------------------------------------------------------------

    def predict(self, X: Any, lengths: Any = None) -> Any:
        """Return the likeliest path of states (Viterbi), one state a step."""

        def path(model: ChainModel, bucket: Bucket, log_seen: Tensor) -> Tensor:
            lanes = Lanes.of(log_seen.shape[0], log_seen.shape[1], log_seen.device)
            logs = model.start.log(), model.move.log(), log_seen
            return viterbi_scan(*logs, lanes, bucket.lengths)[0]

        return self._each_step(X, lengths, path)

    def predict_proba(self, X: Any, lengths: Any = None) -> Any:
        """Return p(state at t | the whole sequence), (T, K) a sequence."""

        def smoothed(model: ChainModel, bucket: Bucket, log_seen: Tensor) -> Tensor:
            laid = Laid(bucket)
            return laid.lanes.gather(expectation(model, laid).states)

        return self._each_step(X, lengths, smoothed)

    def filter(self, X: Any, lengths: Any = None) -> Any:
        """Return p(state at t | observations up to t), (T, K) a sequence."""

        def filtered(model: ChainModel, bucket: Bucket, log_seen: Tensor) -> Tensor:
            if possible(model.move):
                lanes = Lanes.of(log_seen.shape[0], log_seen.shape[1], log_seen.device)
                found = scan(model.start, model.move, lanes.spread(log_seen, 0.0), lanes)
                if bool(found.log_likelihood.isfinite().all()):
                    ahead = lanes.gather(found.ahead.permute(1, 2, 0))
                    return ahead / ahead.sum(dim=-1, keepdim=True)
            return forward(model.start.log(), model.move.log(), log_seen).softmax(dim=-1)

        return self._each_step(X, lengths, filtered)

    def score_samples(self, X: Any, lengths: Any = None) -> np.ndarray:
        """Return log p(x) of each sequence, (B,)."""
        check_is_fitted(self, "transition_")
        found = self._read(self._coded(X), lengths)
        with plain_torch(), torch.no_grad():
            buckets = self._buckets(found)
            model = self._model(buckets[0].values.device)
            each = [expectation(model, Laid(bucket)).log_likelihood for bucket in buckets]
        return found.of_each(buckets, each)

    def score(self, X: Any, y: Any = None, *, lengths: Any = None) -> float:
        """Return the log-likelihood for each time step."""
        found = self._read(self._coded(X), lengths)
        return float(self.score_samples(X, lengths).sum() / found.steps)

    def bic(self, X: Any, lengths: Any = None) -> float:
        """Return the Bayesian information criterion on sequences; the smaller the better."""
        found = self._read(self._coded(X), lengths)
        model = self._model(torch.device("cpu"))
        return _bic(model, float(self.score_samples(X, lengths).sum()), found.steps)

    def sample(self, steps: int = 1, n_samples: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Draw a sequence and its states, or several; by ``random_state``.

        Parameters
        ----------
        steps
            Time steps of a sequence.
        n_samples
            Number of sequences; None: one, without the leading axis.

        Returns
        -------
        tuple
            Observations, (T, D) or (B, T, D), of symbols (T,) or (B, T); states, (T,) or (B, T).
        """
        check_is_fitted(self, "transition_")
        for name, value in (("steps", steps), ("n_samples", 1 if n_samples is None else n_samples)):
            if not Interval(1, whole=True).holds(value):
                raise InvalidParameter(
                    f"HiddenMarkovModel.sample: `{name}` must be a whole number of at least 1; got "
                    f"{value!r}."
                )
        random = generator(seed_from(self.random_state), 2**20)
        start, move, emission = self._model(torch.device("cpu"))
        path = [torch.multinomial(start, n_samples or 1, replacement=True, generator=random)]
        for _ in range(steps - 1):
            path.append(torch.multinomial(move[path[-1]], 1, generator=random)[:, 0])
        states = torch.stack(path, dim=1)  # (B, T)
        drawn = emission.draw(states.reshape(-1), random).view(*states.shape, -1).numpy()
        if self.emission == "discrete":
            drawn = self.symbols_[drawn[..., 0].astype(int)]
        return (drawn, states.numpy()) if n_samples else (drawn[0], states[0].numpy())

    def _each_step(
        self, X: Any, lengths: Any, work: Callable[[ChainModel, Bucket, Tensor], Tensor]
    ) -> Any:
        check_is_fitted(self, "transition_")
        found = self._read(self._coded(X), lengths)
        with plain_torch(), torch.no_grad():
            buckets = self._buckets(found)
            model = self._model(buckets[0].values.device)
            answers = []
            for bucket in buckets:
                laid = Laid(bucket)
                seen = model.emission.log_density(laid.rows)
                log_seen = laid.lanes.gather(seen.view(*laid.inside.shape, -1))
                answers.append(work(model, bucket, log_seen))
        return found.together(buckets, answers)

    def _model(self, device: torch.device) -> ChainModel:
        start, move = (torch.from_numpy(a).to(device) for a in (self.start_, self.transition_))
        names = ("means_", "covariances_", "weights_", "probabilities_")
        arrays = {name: vars(self)[name] for name in names if name in vars(self)}
        return ChainModel(start, move, from_arrays(arrays, device))

    def _coded(self, X: Any, *, reset: bool = False) -> Any:
        """Turn symbols into their numbers, where emissions are discrete."""
        if self.emission != "discrete":
            return X
        arrays = [np.asarray(part) for part in X] if is_list_of_arrays(X) else [np.asarray(X)]
        if reset:
            known = [part[~_absent(part)].ravel() for part in arrays]
            self.symbols_ = np.unique(np.concatenate(known))
        codes = [self._codes(part) for part in arrays]
        return codes if is_list_of_arrays(X) else codes[0]

    def _codes(self, part: np.ndarray) -> np.ndarray:
        absent, codes = _absent(part), np.full(part.shape, np.nan)
        seen = part[~absent]
        at = np.searchsorted(self.symbols_, seen).clip(0, len(self.symbols_) - 1)
        strange = self.symbols_[at] != seen
        if strange.any():
            raise InvalidData(
                "HiddenMarkovModel: symbols must be among those of fit; got "
                f"{seen[strange][0]!r}. Mark what is not known as NaN."
            )
        codes[~absent] = at
        return codes


def _absent(part: np.ndarray) -> np.ndarray:
    """Return where a symbol is missing: NaN or None."""
    if part.dtype.kind == "O":
        return np.array([v is None or v != v for v in part.ravel()]).reshape(part.shape)
    return np.isnan(part) if part.dtype.kind == "f" else np.zeros(part.shape, dtype=bool)


def _variance(rows: np.ndarray) -> np.ndarray:
    """Return the variance of each channel, 1 of a constant one."""
    variance = rows.var(axis=0)
    return np.where(variance > 0, variance, 1.0)


def _moved(model: ChainModel, device: torch.device) -> ChainModel:
    arrays = {name: value.numpy() for name, value in model.emission.arrays().items()}
    return ChainModel(model.start.to(device), model.move.to(device), from_arrays(arrays, device))


def _bic(model: ChainModel, log_likelihood: float, steps: int) -> float:
    k = len(model.start)
    free = k - 1 + k * (k - 1) + model.emission.n_parameters
    return float(free * np.log(steps) - 2 * log_likelihood)


def _shares(table: np.ndarray | None, name: str, k: int) -> None:
    """Refuse probabilities that do not fit, are negative or do not add up to one."""
    if table is None:
        return
    wanted = (k,) if name == "start_" else (k, k) if name == "transition_" else None
    sound = table.shape[0] == k if wanted is None else table.shape == wanted
    if not sound or (table < 0).any() or not np.allclose(table.sum(axis=-1), 1, atol=1e-6):
        raise InvalidParameter(
            f"HiddenMarkovModel.given: `{name[:-1]}` must hold probabilities of {k} states that "
            f"add up to 1; got {table.tolist()}."
        )
