"""The perceptron's walk over examples, row after row, at the speed of matrix products.

The rule looks at one example at a time, but the weights stand still between corrections. So the
scores of a stretch of rows are computed at once and the walk jumps to the first wrong one. Where
corrections are frequent, a block of rows is settled as a whole: with Gram matrix G of its rows
z = y x, the margins seen by the walk are m = m0 + tril(G, -1) a, where a marks the corrected rows,
a = [m <= 0]. Putting the last guess of a into the right side settles at least one more row each
time, and all of them in a few rounds. Either way the corrections are those of the plain rule.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

__all__ = ["ArgmaxWalk", "BinaryWalk", "Walk"]

PIECE = 8192  # rows after which the way to walk is chosen again
BLOCK = 64  # rows settled together
BEHIND = -np.tri(BLOCK, k=-1)  # which rows of a block feel the correction of which
OFTEN = 0.02  # share of corrected rows from which blocks are quicker
KEPT = 2**28  # bytes of Gram matrices that are kept for the next epoch


class Walk:
    """Weights, and what happened to them on the way.

    Attributes
    ----------
    X, y
        Rows (N, D) and their class numbers.
    W, b
        Weights (K, D) and intercepts (K,), in units of the learning rate.
    corrections
        How many there were.
    right
        Answers that were right since the last correction.
    seen
        Examples looked at.
    """

    def __init__(self, W: np.ndarray, b: np.ndarray, *, intercept: bool) -> None:
        self.W, self.b, self.intercept = W, b, intercept
        self.corrections = self.right = self.seen = 0
        self.stretch = BLOCK  # rows whose scores are computed at once

    def over(self, X: Any, y: np.ndarray) -> None:
        """Take the rows to walk over."""
        self.X, self.y, self.sparse = X, y, issparse(X)

    def epoch(self, rule: Any = None) -> int:
        """Walk over all rows once and count the corrections; stop where ``rule`` says.

        Parameters
        ----------
        rule
            From the number of corrections to the right answers in a row that are enough.
        """
        before = self.corrections
        for start in range(0, len(self.y), PIECE):
            self.piece(start, min(start + PIECE, len(self.y)), rule)
            if rule is not None and self.right >= rule(self.corrections):
                break
        return self.corrections - before

    def piece(self, start: int, stop: int, rule: Any) -> None:
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
        """Tell which of some rows the weights of now get wrong."""
        raise NotImplementedError

    def correct(self, row: int) -> None:
        """Move the weights by one row."""
        raise NotImplementedError

    def row(self, row: int) -> np.ndarray:
        """Return a row as a dense vector."""
        return self.X[[row]].toarray()[0] if self.sparse else self.X[row]


class ArgmaxWalk(Walk):
    """K classes at once: on a mistake W_y += x and W_k -= x for the class k that was said."""

    def wrong(self, start: int, stop: int) -> np.ndarray:
        """Tell where another class than the true one scores highest."""
        scores = self.X[start:stop] @ self.W.T + self.b
        self.said = scores.argmax(axis=1)
        self.start = start
        return self.said != self.y[start:stop]

    def correct(self, row: int) -> None:
        """Move the true class towards the row and the other away from it."""
        x, true, said = self.row(row), self.y[row], self.said[row - self.start]
        self.W[true] += x
        self.W[said] -= x
        if self.intercept:
            self.b[true] += 1
            self.b[said] -= 1


class BinaryWalk(Walk):
    """Two classes, y = +-1: on a mistake, y w x <= 0, w += y x."""

    blocks: dict[int, tuple[np.ndarray, np.ndarray]]

    def over(self, X: Any, y: np.ndarray) -> None:
        """Take the rows to walk over."""
        super().over(X, y.astype(X.dtype))
        self.blocks, self.often = {}, False

    def wrong(self, start: int, stop: int) -> np.ndarray:
        """Tell where y w x is not positive."""
        # `dot` costs a third of what `@` does on a few rows
        return (self.X[start:stop].dot(self.W[0]) + self.b[0]) * self.y[start:stop] <= 0

    def correct(self, row: int) -> None:
        """Add y x."""
        self.W[0] += self.y[row] * self.row(row)
        self.b[0] += self.y[row] * self.intercept

    def piece(self, start: int, stop: int, rule: Any) -> None:
        """Walk over some rows in the way that suits how often they are wrong."""
        before = self.corrections
        if self.often and rule is None and not self.sparse:
            w = np.append(self.W[0], self.b[0])
            for first in range(start, stop, BLOCK):
                self.settle(first, min(first + BLOCK, stop), w)
            self.W[0], self.b[0] = w[:-1], w[-1]
        else:
            super().piece(start, stop, rule)
        self.often = self.corrections - before > OFTEN * (stop - start)

    def settle(self, start: int, stop: int, w: np.ndarray) -> None:
        """Walk over a block by finding its corrections all at once."""
        back, gram = self.block(start, stop)  # -z, and -tril(z z^T, -1)
        behind = back.dot(w)  # -m0
        wrong = np.heaviside(behind, 1.0)
        while True:
            again = np.heaviside(behind + gram.dot(wrong), 1.0)
            if again.tobytes() == wrong.tobytes():
                break
            wrong = again
        w -= wrong.dot(back)
        count = int(wrong.sum())
        self.corrections += count
        self.seen += stop - start
        self.right = int(wrong[::-1].argmax()) if count else self.right + stop - start

    def block(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Return what ``settle`` needs, kept from the epoch before where there is room."""
        if start in self.blocks:
            return self.blocks[start]
        sign = -self.y[start:stop, None]
        back = np.concatenate([sign * self.X[start:stop], sign * self.intercept], axis=1)
        found = back, back @ back.T * BEHIND[: stop - start, : stop - start]
        if len(self.y) * (BLOCK + back.shape[1]) * back.itemsize <= KEPT:
            self.blocks[start] = found
        return found
