"""Where examples come from: a function x -> y, or P(x) and P(y | x), with the best error known.

Two normal classes of equal covariance s^2 I, a distance d apart, with priors p_0 and p_1: the best
rule errs with p_0 Phi(-d/2s - s t/d) + p_1 Phi(-d/2s + s t/d), t = log(p_0 / p_1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import log_softmax
from scipy.stats import norm

from castalia.errors import InvalidParameter

__all__ = ["FunctionOracle", "NormalOracle", "parity_table"]

Data = tuple[np.ndarray, np.ndarray]


def parity_table(bits: int) -> Data:
    """Return all rows of so many bits and whether an odd number of them is set.

    >>> parity_table(2)[1]
    array([0, 1, 1, 0])
    """
    if bits < 1:
        raise InvalidParameter(f"parity_table: `bits` must be at least 1; got {bits}.")
    X = (np.arange(2**bits)[:, None] >> np.arange(bits)[::-1]) & 1
    return X, X.sum(axis=1) % 2


@dataclass(frozen=True)
class FunctionOracle:
    """A function of rows drawn at random, whose answers are flipped now and then.

    Parameters
    ----------
    function
        From rows (n, D) to classes 0 and 1, (n,).
    features
        D; rows are uniform between -1 and 1.
    flips
        Chance that an answer is the other one, at most 1/2: the best possible error.

    Examples
    --------
    >>> oracle = FunctionOracle(lambda X: (X[:, 0] > 0).astype(int), features=2, flips=0.1)
    >>> oracle.draw(3, seed=0)[0].shape, oracle.bayes_error()
    ((3, 2), 0.1)
    """

    function: Callable[[np.ndarray], np.ndarray]
    features: int
    flips: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.flips <= 0.5:
            raise InvalidParameter(
                f"FunctionOracle: `flips` must be from 0 to 1/2; got {self.flips}."
            )

    def draw(self, n: int, seed: int = 0) -> Data:
        """Return n rows and their answers."""
        random = np.random.default_rng(seed)
        X = random.uniform(-1, 1, (n, self.features))
        return X, self.function(X) ^ (random.random(n) < self.flips)

    def bayes_error(self) -> float:
        """Return the error of the best rule, which is the function itself."""
        return self.flips


@dataclass(frozen=True, eq=False)
class NormalOracle:
    """Classes that are normal clouds of one width: P(y), P(x | y) and so P(y | x).

    Parameters
    ----------
    means
        Centres, (K, D).
    scale
        Standard deviation s in every direction.
    priors
        Probabilities of the classes, (K,); None: all alike.

    Examples
    --------
    >>> oracle = NormalOracle(np.array([[0.0], [2.0]]))
    >>> round(oracle.bayes_error(), 4)  # Phi(-1)
    0.1587
    """

    means: np.ndarray
    scale: float = 1.0
    priors: np.ndarray | None = None

    @property
    def shares(self) -> np.ndarray:
        """Probabilities of the classes, (K,)."""
        given = np.ones(len(self.means)) if self.priors is None else np.asarray(self.priors)
        return given / given.sum()

    def draw(self, n: int, seed: int = 0) -> Data:
        """Return n rows and their classes."""
        random = np.random.default_rng(seed)
        y = random.choice(len(self.means), n, p=self.shares)
        return self.means[y] + self.scale * random.normal(size=(n, self.means.shape[1])), y

    def posterior(self, X: np.ndarray) -> np.ndarray:
        """Return P(y | x) by Bayes' rule, (n, K)."""
        far = ((X[:, None] - self.means[None]) ** 2).sum(axis=2)
        found: np.ndarray = np.exp(
            log_softmax(np.log(self.shares) - far / 2 / self.scale**2, axis=1)
        )
        return found

    def bayes_error(self, draws: int = 200_000) -> float:
        """Return the error of the best rule: exact for two classes, else a mean over draws."""
        if len(self.means) > 2:
            return float(1 - self.posterior(self.draw(draws)[0]).max(axis=1).mean())
        d = float(np.linalg.norm(self.means[1] - self.means[0])) / self.scale
        first, second = self.shares
        if d == 0:
            return float(min(first, second))
        t = np.log(first / second) / d
        return float(first * norm.cdf(-d / 2 - t) + second * norm.cdf(-d / 2 + t))
