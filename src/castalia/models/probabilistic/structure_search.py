"""Greedy search for the graph of a Bayesian network, with a tabu list.

Every step takes the best of all single additions, removals and reversals of an edge. Scores are
sums over families, so only the columns of the changed children are computed again. At a local
optimum the least bad move is taken, edges moved lately stand still, and the best graph is kept.
Reference: 2003, Bouckaert, and 1989, Glover, Tabu search, ORSA Journal on Computing 1.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

__all__ = ["StructureSearch"]

TIE = 1e-7  # gains below this are noise of the arithmetic


class StructureSearch:
    """A search over directed acyclic graphs.

    Parameters
    ----------
    names
        Variables.
    score
        From a variable and a set of parents to a number; higher is better.
    allowed
        Whether an edge from one (row) to another (column) may exist, (D, D).
    max_parents
        Most parents of a variable.
    tabu
        Steps for which a moved edge stands still, and for which a search goes on without gain.

    Examples
    --------
    >>> def score(child, parents):  # b wants a, nobody else wants anybody
    ...     return float(child == "b" and parents == {"a"}) - 0.1 * len(parents)
    >>> StructureSearch(["a", "b"], score, np.ones((2, 2), bool)).run()
    {'a': (), 'b': ('a',)}
    """

    def __init__(
        self,
        names: Sequence[str],
        score: Callable[[str, frozenset[str]], float],
        allowed: np.ndarray,
        max_parents: int = 4,
        tabu: int = 10,
    ) -> None:
        self.names, self.score, self.max_parents, self.tabu = list(names), score, max_parents, tabu
        d = len(self.names)
        self.allowed = allowed & ~np.eye(d, dtype=bool)
        self.edge = np.zeros((d, d), dtype=bool)  # from row to column
        self.gain = np.full((d, d), -np.inf)  # of adding an absent edge, of removing a present one
        self.steps = 0
        for child in range(d):
            self._refresh(child)

    def _parents(self, child: int) -> frozenset[str]:
        return frozenset(self.names[i] for i in np.flatnonzero(self.edge[:, child]))

    def _refresh(self, child: int) -> None:
        """Compute what each edge to a child is worth, now that its parents changed."""
        now = self._parents(child)
        name, start = self.names[child], self.score(self.names[child], now)
        for i in np.flatnonzero(self.allowed[:, child]):
            other = now ^ {self.names[i]}
            fits = len(other) <= self.max_parents
            self.gain[i, child] = self.score(name, other) - start if fits else -np.inf

    def run(self) -> dict[str, tuple[str, ...]]:
        """Search, and return the parents of every variable."""
        recent: deque[tuple[int, int]] = deque(maxlen=max(self.tabu, 1))
        total, best, kept, idle = 0.0, 0.0, self.edge.copy(), 0
        while idle <= self.tabu:
            gain, a, b, turn = self._best_move(recent if self.tabu else ())
            if gain == -np.inf or (not self.tabu and gain <= TIE):
                break
            self._move(a, b, turn)
            recent.append((a, b))
            total, idle, self.steps = total + gain, idle + 1, self.steps + 1
            if total > best + TIE:
                best, kept, idle = total, self.edge.copy(), 0
        self.edge = kept
        return {
            name: tuple(self.names[i] for i in np.flatnonzero(kept[:, c]))
            for c, name in enumerate(self.names)
        }

    def _best_move(self, recent: Sequence[tuple[int, int]]) -> tuple[float, int, int, bool]:
        """Return the gain of the best legal move, its edge, and whether it turns the edge."""
        reach = _closure(self.edge)
        flat = np.where(self.edge | ~reach.T, self.gain, -np.inf)
        turned = np.where(self.edge & ~_detour(self.edge, reach), self.gain + self.gain.T, -np.inf)
        for a, b in recent:
            flat[a, b] = flat[b, a] = turned[a, b] = turned[b, a] = -np.inf
        turn = bool(turned.max() > flat.max() + TIE)
        moves = turned if turn else flat
        a, b = divmod(_first(moves), len(moves))
        return float(moves[a, b]), a, b, turn

    def _move(self, a: int, b: int, turn: bool) -> None:
        self.edge[a, b] = not self.edge[a, b]
        self._refresh(b)
        if turn:
            self.edge[b, a] = True
            self._refresh(a)


def _first(gains: np.ndarray) -> int:
    """Return the first of the best entries, alike up to rounding."""
    top = gains.max()
    return int(np.argmax(gains >= top - TIE)) if np.isfinite(top) else 0


def _closure(edge: np.ndarray) -> np.ndarray:
    """Return whether a directed path leads from row to column; every node reaches itself."""
    reach = edge | np.eye(len(edge), dtype=bool)
    for _ in range(max(1, int(np.ceil(np.log2(max(len(edge), 2)))))):
        reach = reach.astype(np.float32) @ reach.astype(np.float32) > 0
    return reach


def _detour(edge: np.ndarray, reach: np.ndarray) -> np.ndarray:
    """Return whether a path longer than one edge leads from row to column."""
    apart = reach & ~np.eye(len(edge), dtype=bool)
    return edge.astype(np.float32) @ apart.astype(np.float32) > 0
