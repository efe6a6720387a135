"""Boltzmann machines without hidden units."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from castalia.base import DirectEstimator, Interval, OneOf
from castalia.base.direct_descent import descend
from castalia.errors import InvalidData
from castalia.nets.probabilistic.boltzmann_network import ENUMERABLE, BoltzmannNetwork
from castalia.objectives.contrastive_divergence import ContrastiveDivergence
from castalia.objectives.objective import Objective
from castalia.objectives.penalties import L2
from castalia.objectives.pseudo_likelihood import PseudoLikelihood
from castalia.sampling import AnnealedEstimate, annealed_importance
from castalia.train import Training
from castalia.utils.seeds import derive, generator, seed_from

__all__ = ["BoltzmannMachine"]


@dataclass(kw_only=True, eq=False, repr=False)
class BoltzmannMachine(DensityMixin, DirectEstimator):
    """Distribution over binary columns with a weight between any two.

    P(x) = exp(x^T U x + b^T x) / Z. Pseudo-likelihood predicts every column from the others, a
    convex problem without Z; contrastive divergence follows the gradient of the likelihood with
    samples. Right for tens of yes/no columns whose pairwise ties matter; ``BayesianNetwork`` parts
    direct ties from indirect ones and answers exactly, a restricted Boltzmann machine has
    hidden units.

    Parameters
    ----------
    method
        ``"pseudo"``: pseudo-likelihood, by L-BFGS on all rows; ``"contrastive"``: contrastive
        divergence with persistent chains.
    threshold
        Values above it are 1, others 0.
    alpha
        L2 penalty on the weights; larger makes columns more independent.
    k
        Sweeps of Gibbs sampling in a step of contrastive divergence.
    epochs
        Passes over the rows, or rounds of L-BFGS.
    batch_size, lr
        Rows of a step and learning rate of contrastive divergence.

    Attributes
    ----------
    coupling_ : ndarray of shape (D, D)
        U + U^T: weights between columns, zeros on the diagonal.
    bias_ : ndarray of shape (D,)
        b.
    history_ : list of dict
        One line an epoch.

    Shapes
    ------
    X (N, D): an array or a frame of numbers, 0 and 1 by ``threshold``, gaps in ``impute`` only.

    Notes
    -----
    ln Z is summed over all states up to 20 columns; beyond, annealed importance sampling estimates
    it once, with an interval (``log_partition``).

    References
    ----------
    1985, Ackley, Hinton, Sejnowski, A learning algorithm for Boltzmann machines, Cognitive Science
    9. 1975, Besag, Statistical analysis of non-lattice data.

    See Also
    --------
    castalia.BayesianNetwork : directed, exact, with any states.

    Examples
    --------
    >>> X = np.repeat([[1, 1, 0], [0, 0, 1], [1, 1, 1], [0, 0, 0]], 25, axis=0)
    >>> model = BoltzmannMachine(random_state=0).fit(X)
    >>> bool(model.coupling_[0, 1] > 2), bool(abs(model.coupling_[0, 2]) < 0.1)
    (True, True)
    """

    _unsaved: ClassVar[tuple[str, ...]] = ("history_",)

    method: Annotated[str, OneOf("pseudo", "contrastive")] = "pseudo"
    threshold: Annotated[float, Interval(-float("inf"))] = 0.5
    alpha: Annotated[float, Interval(0)] = 1e-3
    k: Annotated[int, Interval(1, whole=True)] = 1
    epochs: Annotated[int, Interval(1, whole=True)] = 20
    batch_size: Annotated[int, Interval(1, whole=True)] = 64
    lr: Annotated[float, Interval(0, closed="neither")] = 0.05

    def _solve(self, X: Any, y: Any, sample_weight: np.ndarray | None) -> None:
        rows = self._binary(np.asarray(X.cpu() if isinstance(X, Tensor) else X))
        net = BoltzmannNetwork(rows.shape[1])
        whole = self.method == "pseudo"
        state = descend(
            self,
            net,
            self._objective(min(self.batch_size, len(rows))) + L2(self.alpha),
            rows,
            torch.zeros(len(rows)),
            sample_weight,
            training=self._loop(),
            epochs=self.epochs,
            batch_size=len(rows) if whole else self.batch_size,
            lr=1.0 if whole else self.lr,
        )
        self.coupling_ = net.coupling.detach().numpy().copy()
        self.bias_ = net.bias.detach().numpy().copy()
        self.history_ = state.history
        self.__dict__.pop("_log_z", None)

    def _objective(self, batch: int) -> Objective:
        if self.method == "pseudo":
            return PseudoLikelihood()
        return ContrastiveDivergence(self.k, persistent=batch)

    def _loop(self) -> Training:
        optimizer: Any = "lbfgs" if self.method == "pseudo" else ("sgd", {"momentum": 0.5})
        schedule = None if self.method == "pseudo" else "linear_decay"
        return Training(
            optimizer=optimizer,
            schedule=schedule,
            validation=0,
            watch=False,
            verbose=False,
            device=self.device,
        )

    def _binary(self, X: np.ndarray) -> np.ndarray:
        return (self.threshold < X).astype(np.float64)

    @property
    def network_(self) -> BoltzmannNetwork:
        """The machine as a network, in double precision."""
        check_is_fitted(self, "coupling_")
        net = BoltzmannNetwork(len(self.bias_)).double().requires_grad_(False)
        net.upper.data = torch.from_numpy(np.triu(self.coupling_, 1).astype(np.float64))
        net.bias.data = torch.from_numpy(self.bias_.astype(np.float64))
        largest = float((net.coupling.abs().sum(dim=1) + net.bias.abs()).max())
        if not math.isfinite(largest):
            raise InvalidData(
                "BoltzmannMachine: weights must be finite; some overflowed. Raise `alpha` or lower "
                "`lr`."
            )
        return net

    def log_partition(self, *, runs: int = 100, betas: int = 1000) -> AnnealedEstimate:
        """Return ln Z by annealing from independent columns, with the interval of its error.

        Up to 20 columns it is the exact sum, and the interval is a point.
        """
        net = self.network_
        if len(self.bias_) <= ENUMERABLE:
            exact = float(net.log_z())
            return AnnealedEstimate(exact, exact, exact, math.inf, torch.empty(0))
        d = len(self.bias_)
        source = generator(derive(seed_from(self.random_state), 2))
        start = torch.randint(2, (runs, d), generator=source).double()
        return annealed_importance(
            lambda x, beta: -beta * net.free_energy(x),
            lambda x, beta, chance: net.gibbs(x, chance, beta),
            start,
            log_z=d * math.log(2),
            betas=betas,
            random_state=derive(seed_from(self.random_state), 3) % 2**31,
        )

    def score_samples(self, X: Any) -> np.ndarray:
        """Return ln P of each row, (N,)."""
        check_is_fitted(self, "coupling_")
        rows = torch.from_numpy(self._binary(np.asarray(self._matrix(X))))
        if "_log_z" not in self.__dict__:
            self.__dict__["_log_z"] = self.log_partition().log_z
        energy: np.ndarray = self.network_.free_energy(rows).numpy()
        return np.asarray(-energy - self.__dict__["_log_z"])

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean of ln P over the rows."""
        return float(self.score_samples(X).mean())

    def perplexity(self, X: Any) -> float:
        """Return exp of minus the score: so many equally likely rows would surprise as much."""
        return math.exp(-self.score(X))

    def pseudo_likelihood(self, X: Any) -> np.ndarray:
        """Return sum_i ln P(x_i | all others) of each row, (N,); no Z needed."""
        check_is_fitted(self, "coupling_")
        rows = torch.from_numpy(self._binary(np.asarray(self._matrix(X))))
        found: np.ndarray = self.network_.log_pseudo(rows).numpy()
        return found

    def sample(self, n: int = 1, *, steps: int = 500, random_state: Any = None) -> np.ndarray:
        """Draw rows, each the end of its own chain of Gibbs sweeps, (n, D)."""
        net = self.network_
        seed = seed_from(self.random_state if random_state is None else random_state)
        source = generator(derive(seed, 4))
        x = torch.randint(2, (n, len(self.bias_)), generator=source).double()
        for _ in range(steps):
            x = net.gibbs(x, source)
        found: np.ndarray = x.numpy()
        return found

    def impute(self, X: Any, *, steps: int = 500, random_state: Any = None) -> np.ndarray:
        """Fill gaps (NaN) with their more probable value given the rest of the row, (N, D).

        Gaps are drawn again and again by Gibbs sampling with the rest fixed, and averaged.
        """
        net = self.network_
        X = validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite="allow-nan")
        gap = torch.from_numpy(np.isnan(X))
        known = torch.from_numpy(self._binary(np.nan_to_num(X)))
        seed = seed_from(self.random_state if random_state is None else random_state)
        source = generator(derive(seed, 5))
        x = torch.where(gap, torch.randint(2, X.shape, generator=source).double(), known)
        total, burn_in = torch.zeros_like(x), steps // 5
        for step in range(steps + burn_in):
            for i in torch.nonzero(gap.any(dim=0)).flatten().tolist():
                p = (x @ net.coupling[i] + net.bias[i]).sigmoid()
                x[:, i] = torch.where(gap[:, i], torch.bernoulli(p, generator=source), x[:, i])
                total[:, i] += p if step >= burn_in else 0.0
        found: np.ndarray = torch.where(gap, (total / steps > 0.5).double(), known).numpy()
        return found
