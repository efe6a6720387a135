"""The perceptron's walk over examples, row after row, at the speed of matrix products.

The rule takes one example at a time, but the weights stand still between corrections. So the
scores of a stretch of rows are computed at once and the walk jumps to the first wrong one. Where
corrections of two classes are frequent, scikit-learn's compiled loop makes them one by one. Either
way the corrections are those of the plain rule.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack, issparse
from sklearn import config_context
from sklearn.linear_model import Perceptron as Compiled

__all__ = ["ArgmaxWalk", "BinaryWalk", "Walk"]

PIECE = 8192  # rows after which the way to walk is chosen again,
FIRST = 1024  # sooner near the start
BLOCK = 64  # rows whose scores are computed at once, to begin with
OFTEN = 0.02  # share of corrected rows from which the compiled loop is quicker
LONG = 2**17  # rows given to it at a time
KEPT = 2**28  # bytes of its rows that are kept for the next epoch
TRACE = 2.0**-600  # its square is zero in float64, so a column of it counts and changes nothing


class Walk:
    """Weights, and what happened to them on the way.

    Attributes
    ----------
    X, y, size
        Rows (N, D), their class numbers, and the factor of each row's correction.
    W, b
        Weights (K, D) and intercepts (K,), in units of the learning rate.
    corrections
        How many there were.
    right
        Answers that were right since the last correction, where a rule asks for them.
    seen
        Examples seen.
    """

    def __init__(self, W: np.ndarray, b: np.ndarray, *, intercept: bool) -> None:
        self.W, self.b, self.intercept = W, b, intercept
        self.corrections = self.right = self.seen = 0
        self.stretch = BLOCK  # rows whose scores are computed at once

    def over(self, X: Any, y: np.ndarray, size: np.ndarray | None = None) -> None:
        """Take the rows to walk over, and how much each correction counts."""
        self.X, self.y, self.sparse = X, y, issparse(X)
        self.size = np.ones(len(y), X.dtype) if size is None else size.astype(X.dtype)

    def epoch(self, rule: Any = None) -> int:
        """Walk over all rows once and count the corrections; stop where ``rule`` says.

        Parameters
        ----------
        rule
            From the number of corrections to the right answers in a row that are enough.
        """
        before, start = self.corrections, 0
        while start < len(self.y):
            start = self.piece(start, rule)
            if rule is not None and self.right >= rule(self.corrections):
                break
        return self.corrections - before

    def piece(self, start: int, rule: Any) -> int:
        """Walk over some rows from one on, and say where the next piece begins."""
        stop = min(start + PIECE, 2 * start + FIRST, len(self.y))
        self.stretches(start, stop, rule)
        return stop

    def stretches(self, start: int, stop: int, rule: Any) -> None:
        """Walk over some rows from correction to correction."""
        while start < stop:
            end = min(start + self.stretch, stop)
            if rule is not None:
                end = min(end, start + rule(self.corrections) - self.right)
            wrong = self.wrong(start, end)
            first = int(wrong.argmax())
            if wrong[first]:
                self.correct(start + first)
                self.corrections += 1
                self.right, end = 0, start + first + 1
                self.stretch = max(self.stretch // 2, 16)
            else:
                self.right += end - start
                self.stretch = min(2 * self.stretch, PIECE)
            self.seen += end - start
            start = end
            if rule is not None and self.right >= rule(self.corrections):
                return

    def wrong(self, start: int, stop: int) -> np.ndarray:
        """Return which of some rows the weights of now get wrong."""
        raise NotImplementedError

    def correct(self, row: int) -> None:
        """Move the weights by one row."""
        raise NotImplementedError

    def step(self, row: int) -> np.ndarray:
        """Return what a correction adds: a row as a dense vector, by its size."""
        x = self.X[[row]].toarray()[0] if self.sparse else self.X[row]
        return self.size[row] * x


class ArgmaxWalk(Walk):
    """K classes at once: on a mistake W_y += x and W_k -= x for the class k that was said."""

    def wrong(self, start: int, stop: int) -> np.ndarray:
        """Return where another class than the true one scores highest."""
        scores = self.X[start:stop] @ self.W.T + self.b
        self.said = scores.argmax(axis=1)
        self.start = start
        return self.said != self.y[start:stop]

    def correct(self, row: int) -> None:
        """Move the true class towards the row and the other away from it."""
        x, true, said = self.step(row), self.y[row], self.said[row - self.start]
        self.W[true] += x
        self.W[said] -= x
        if self.intercept:
            self.b[true] += self.size[row]
            self.b[said] -= self.size[row]


class BinaryWalk(Walk):
    """Two classes, y = +-1: on a mistake, y w x <= 0, w += y x."""

    often = False  # whether the last piece had many corrections
    kept: Any = None

    def over(self, X: Any, y: np.ndarray, size: np.ndarray | None = None) -> None:
        """Take the rows to walk over, and how much each correction counts."""
        super().over(X, y.astype(X.dtype), size)
        self.kept = None

    def wrong(self, start: int, stop: int) -> np.ndarray:
        """Return where y w x is not positive."""
        # `dot` costs a third of what `@` does on a few rows
        return (self.X[start:stop].dot(self.W[0]) + self.b[0]) * self.y[start:stop] <= 0

    def correct(self, row: int) -> None:
        """Add y x."""
        self.W[0] += self.y[row] * self.step(row)
        self.b[0] += self.y[row] * self.size[row] * self.intercept

    def piece(self, start: int, rule: Any) -> int:
        """Walk over some rows in the way that suits how often they are wrong."""
        before = self.corrections
        stop = min(start + LONG, len(self.y))
        signs = self.y[start:stop]
        if self.often and rule is None and signs.min() < signs.max():
            self.compiled(start, stop)
        else:
            stop = super().piece(start, rule)
        self.often = self.corrections - before > OFTEN * (stop - start)
        return stop

    def compiled(self, start: int, stop: int) -> None:
        """Walk over some rows by scikit-learn's loop, which makes the same corrections."""
        model = Compiled(fit_intercept=False, shuffle=False, max_iter=1, tol=None)
        w = np.concatenate([self.W[0], self.b, [0.0]])[None]
        with config_context(assume_finite=True, skip_parameter_validation=True):
            model.fit(
                self.rows(start, stop),
                self.y[start:stop],
                coef_init=w,
                sample_weight=self.size[start:stop],
            )
        found = model.coef_[0]
        self.W[0], self.b[0] = found[:-2], found[-2]
        self.corrections += round(found[-1] / TRACE)
        self.seen += stop - start

    def rows(self, start: int, stop: int) -> Any:
        """Return some rows, (x, 1, trace of a correction), kept from before where there is room."""
        size = 3 * self.X.nnz if self.sparse else self.X.size
        if self.kept is None and 8 * (size + 2 * len(self.y)) <= KEPT:
            self.kept = self.traced(0, len(self.y))
        return self.traced(start, stop) if self.kept is None else self.kept[start:stop]

    def traced(self, start: int, stop: int) -> Any:
        """Return some rows with a column for the intercept and one that counts corrections."""
        y, size = self.y[start:stop].astype(np.float64), self.size[start:stop]
        more = np.stack([np.full(len(y), float(self.intercept)), TRACE * y / size], axis=1)
        if self.sparse:
            return hstack([self.X[start:stop], csr_array(more)], format="csr", dtype=np.float64)
        return np.concatenate([self.X[start:stop], more], axis=1)
