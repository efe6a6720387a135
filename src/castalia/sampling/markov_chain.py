"""A Markov chain of finitely many states: where it ends, and how fast.

A[i, j] is the probability of going from j to i, so columns sum to one and v(t) = A v(t - 1).
v(t) tends to the one stationary law from everywhere only where the chain is irreducible (every
state reaches every other) and aperiodic. Reference: 2009, Levin, Peres, Wilmer, Markov chains and
mixing times.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from castalia.errors import InvalidData, SolverFailed
from castalia.utils.seeds import seed_from

__all__ = ["MarkovChain"]


class MarkovChain:
    """A chain given by its transition matrix.

    Parameters
    ----------
    transition
        (K, K), columns sum to one: entry i, j is the probability of going from j to i.

    Examples
    --------
    >>> chain = MarkovChain([[0.9, 0.5], [0.1, 0.5]])
    >>> chain.stationary().round(4).tolist(), round(chain.second_eigenvalue, 4)
    ([0.8333, 0.1667], 0.4)
    >>> chain.mixing_time(0.01)
    5
    """

    def __init__(self, transition: Any) -> None:
        A = np.asarray(transition, dtype=np.float64)
        if A.ndim != 2 or A.shape[0] != A.shape[1] or not len(A):
            raise InvalidData(
                f"MarkovChain: `transition` must be a square matrix; got shape {A.shape}."
            )
        if not (A >= 0).all():
            i, j = np.argwhere(~(A >= 0))[0]
            raise InvalidData(
                f"MarkovChain: probabilities must be at least 0; got {A[i, j]:g} from state {j} to "
                f"{i}."
            )
        off = A.sum(axis=0) - 1
        worst = int(np.abs(off).argmax())
        if abs(off[worst]) > 1e-8:
            rows = np.abs(A.sum(axis=1) - 1).max() <= 1e-8
            raise InvalidData(
                f"MarkovChain: every column must sum to 1; column {worst} is off by "
                f"{off[worst]:+.3g}.{' Its rows do: transpose it.' if rows else ''}"
            )
        self.transition = A

    # -- structure --

    @property
    def classes(self) -> list[list[int]]:
        """States that reach each other, class by class."""
        from scipy.sparse.csgraph import connected_components

        count, label = connected_components(self.transition.T > 0, connection="strong")
        return [np.flatnonzero(label == k).tolist() for k in range(count)]

    @property
    def irreducible(self) -> bool:
        """Whether every state reaches every other."""
        return len(self.classes) == 1

    @property
    def period(self) -> int:
        """Greatest common divisor of the lengths of all ways back to state 0; 1: aperiodic."""
        level, queue, period = {0: 0}, [0], 0
        for state in queue:
            for there in np.flatnonzero(self.transition[:, state] > 0).tolist():
                if there not in level:
                    level[there] = level[state] + 1
                    queue.append(there)
                period = math.gcd(period, level[state] + 1 - level[there])
        return abs(period)

    @property
    def aperiodic(self) -> bool:
        """Whether v(t) can settle instead of going round."""
        return self.period == 1

    def _demand(self, *, aperiodic: bool) -> None:
        if not self.irreducible:
            raise InvalidData(
                f"MarkovChain: the chain must be irreducible; its states fall into {self.classes}, "
                "which do not all reach each other, so where it ends depends on where it begins."
            )
        if aperiodic and not self.aperiodic:
            raise InvalidData(
                f"MarkovChain: the chain must be aperiodic; it returns every {self.period} steps "
                "and never converges. Let it stay where it is with some probability."
            )

    # -- where it ends --

    def stationary(self) -> np.ndarray:
        """Return the law v with A v = v, (K,), of an irreducible chain."""
        self._demand(aperiodic=False)
        n = len(self.transition)
        system = np.vstack([self.transition - np.eye(n), np.ones(n)])
        v = np.linalg.lstsq(system, np.r_[np.zeros(n), 1.0], rcond=None)[0]
        return np.clip(v, 0, None) / np.clip(v, 0, None).sum()

    def limit(self, start: Any = None, *, tol: float = 1e-12, steps: int = 1_000_000) -> np.ndarray:
        """Return where v(t) = A v(t - 1) settles, (K,), by taking the steps."""
        self._demand(aperiodic=True)
        v = self._law(start)
        for _ in range(steps):
            before, v = v, self.transition @ v
            if np.abs(v - before).sum() < tol:
                return v
        raise SolverFailed(
            f"MarkovChain: v(t) still moved after {steps:,} steps; its second eigenvalue is "
            f"{self.second_eigenvalue:.8g}. Ask `stationary()`."
        )

    def _law(self, start: Any) -> np.ndarray:
        n = len(self.transition)
        if start is None or np.ndim(start) == 0:
            return np.eye(n)[0 if start is None else int(start)]
        v = np.asarray(start, dtype=np.float64)
        if v.shape != (n,) or (v < 0).any() or abs(v.sum() - 1) > 1e-8:
            raise InvalidData(
                f"MarkovChain: `start` must be a state or {n} probabilities that sum to 1; got "
                f"shape {v.shape} with sum {v.sum():g}."
            )
        return v

    # -- how fast --

    @property
    def second_eigenvalue(self) -> float:
        """Second largest modulus of an eigenvalue: distances shrink by it in every step."""
        sizes = np.sort(np.abs(np.linalg.eigvals(self.transition)))
        return float(sizes[-2]) if len(sizes) > 1 else 0.0

    def total_variation(self, steps: int, start: Any = None) -> np.ndarray:
        """Return half of |v(t) - stationary|_1 for t = 0 … steps, (steps + 1,).

        From one start, or, when None, the worst over all states.
        """
        goal = self.stationary()[:, None]
        V = np.eye(len(goal)) if start is None else self._law(start)[:, None]
        found = []
        for _ in range(steps + 1):
            found.append(np.abs(V - goal).sum(axis=0).max() / 2)
            V = self.transition @ V
        return np.array(found)

    def mixing_time(self, eps: float = 0.25) -> int:
        """Return the first t at which, from every state, the total variation is at most eps."""
        self._demand(aperiodic=True)
        goal = self.stationary()[:, None]

        def far(M: np.ndarray) -> bool:
            return bool(np.abs(M - goal).sum(axis=0).max() / 2 > eps)

        powers = [self.transition]  # A^(2^k), until it is near
        if not far(np.eye(len(goal))):
            return 0
        while far(powers[-1]):
            powers.append(powers[-1] @ powers[-1])
        at, steps = np.eye(len(goal)), 0
        for k in reversed(range(len(powers) - 1)):  # the last t that is still far
            if far(at @ powers[k]):
                at, steps = at @ powers[k], steps + 2**k
        return steps + 1

    def detailed_balance(self, law: Any = None) -> float:
        """Return the largest |v_j A_ij - v_i A_ji|: 0 of a chain that is reversible under a law."""
        flow = self.transition * (self.stationary() if law is None else np.asarray(law))
        return float(np.abs(flow - flow.T).max())

    # -- a walk --

    def simulate(
        self, steps: int, *, chains: int = 1, start: Any = None, random_state: Any = None
    ) -> np.ndarray:
        """Walk: return the states of each chain, (chains, steps + 1)."""
        random = np.random.default_rng(seed_from(random_state))
        cumulative = self.transition.cumsum(axis=0)
        states = np.empty((chains, steps + 1), dtype=np.int64)
        states[:, 0] = random.choice(len(self.transition), size=chains, p=self._law(start))
        for t in range(steps):
            at = random.random(chains) * cumulative[-1, states[:, t]]
            states[:, t + 1] = (cumulative[:, states[:, t]] <= at).sum(axis=0)
        return states

    def __repr__(self) -> str:
        return f"MarkovChain({len(self.transition)} states)"
