"""Rows of a table as the clusterings see them: a chunk at a time, with a one at their end.

The last column of every row is 1, so an affine map a.x + b is one product with (a, b), and a sum
of rows carries their count with it. Shapes: N rows, D features, K clusters, B rows of a chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

__all__ = ["Points"]

CHUNK = 2**19  # numbers that a chunk of an (N, K) table may hold: 4 MB in float64
LANES = 16  # partial sums; fixed, so that the number of threads changes no digit


class Points:
    """Rows with weights, dense on any device or scipy's CSR on the CPU.

    Parameters
    ----------
    X
        Rows, (N, D): a tensor or a CSR matrix.
    weight
        Weights, (N,), or None.
    origin
        What to subtract from dense rows, (D,), so that squares lose no digits far from zero; their
        mean when None. Sparse rows stay as they are.

    Attributes
    ----------
    origin
        What was subtracted, (D,).
    weight
        Weights in the number format of X, (N,).
    norms
        |x|^2 of each row, (N,), after subtraction.
    spread
        How to go through chunks: ``map``, or one that spreads them over threads.
    """

    def __init__(
        self, X: Any, weight: np.ndarray | None = None, origin: Tensor | None = None
    ) -> None:
        self.n, self.d = X.shape
        self.sparse = sp.issparse(X)
        self.spread: Callable[..., Iterable[Any]] = map
        if self.sparse:
            ones = sp.csr_array(np.ones((self.n, 1), X.dtype))
            self.rows = sp.csr_array(sp.hstack([X, ones], format="csr", dtype=X.dtype))
            self.origin = torch.zeros(self.d, dtype=torch.from_numpy(X.data[:0]).dtype)
            self.norms = torch.from_numpy(np.asarray(X.multiply(X).sum(axis=1)).reshape(-1))
        else:
            self.origin = X.mean(dim=0) if origin is None else origin
            self.rows = torch.ones(self.n, self.d + 1, dtype=X.dtype, device=X.device)
            torch.sub(X, self.origin, out=self.rows[:, :-1])
            self.norms = torch.linalg.vector_norm(self.rows[:, :-1], dim=1).square()
        given = np.ones(self.n) if weight is None else weight
        self.weight = torch.from_numpy(given).to(self.origin)

    def variance(self) -> float:
        """Return the weighted variance of a feature, on average over the features."""
        weight = self.weight.double()
        mean = self.total(self.weight[None], slice(0, self.n))[0, :-1] / weight.sum()
        return float((weight @ self.norms.double() / weight.sum() - mean.square().sum()) / self.d)

    def sample(self, size: int, generator: torch.Generator) -> Points:
        """Draw rows by their weight, evenly over their order; in the sample all weigh the same."""
        running = self.weight.cpu().double().cumsum(0)
        jitter = torch.rand(size, dtype=torch.float64, generator=generator)
        place = (torch.arange(size) + jitter) * (running[-1] / size)
        drawn = torch.searchsorted(running, place, right=True).clamp_max(self.n - 1)
        if self.sparse:
            return Points(self._take(drawn)[:, :-1])
        return Points(
            self.dense(drawn.to(self.origin.device)), origin=torch.zeros_like(self.origin)
        )

    def chunks(self, width: int) -> list[slice]:
        """Cut the rows into pieces whose tables, ``width`` numbers a row, stay small."""
        size = max(64, CHUNK // width)
        return [slice(i, min(i + size, self.n)) for i in range(0, self.n, size)]

    def each(self, work: Callable[[slice], Tensor], width: int) -> list[Tensor]:
        """Return the results of all chunks, in order."""
        return list(self.spread(work, self.chunks(width)))

    def add_up(self, work: Callable[[slice], tuple[Any, ...]], width: int) -> tuple[Any, ...]:
        """Return the sums of what the chunks give, number by number and tensor by tensor."""
        chunks = self.chunks(width)

        def lane(start: int) -> tuple[Any, ...]:
            return reduce(_plus, (work(rows) for rows in chunks[start::LANES]))

        return reduce(_plus, self.spread(lane, range(min(LANES, len(chunks)))))

    def affine(self, maps: Tensor, rows: slice | Tensor) -> Tensor:
        """Return a.x + b of some rows for each map (a, b): (K, D + 1) to (K, B)."""
        if self.sparse:
            found = self._take(rows) @ maps.T.numpy()
            return torch.from_numpy(np.ascontiguousarray(found.T))
        return maps @ self._take(rows).T

    def total(self, share: Tensor, rows: slice | Tensor) -> Tensor:
        """Add up some rows with given shares, (K, B) to (K, D + 1) in float64; the end counts."""
        if self.sparse:
            return torch.from_numpy((self._take(rows).T @ share.T.numpy()).T).double()
        return (share @ self._take(rows)).double()

    def squares(self, centers: Tensor, labels: Tensor) -> Tensor:
        """Return |x - c|^2 of each row and the centre of its label, (N,)."""
        if self.sparse:
            own = self._own_products(centers, labels)
            return (self.norms - 2 * own + centers.square().sum(dim=1)[labels]).clamp_min_(0)

        def square(rows: slice) -> Tensor:
            apart = self.rows[rows, :-1] - centers[labels[rows]]
            return torch.linalg.vector_norm(apart, dim=1).square_()

        return torch.cat(self.each(square, self.d))

    def _own_products(self, centers: Tensor, labels: Tensor) -> Tensor:
        """Return c.x of each sparse row and the centre of its label."""
        at = labels.numpy()
        chunks = [
            self.rows[rows, :-1].multiply(centers.numpy()[at[rows]]).sum(axis=1)
            for rows in self.chunks(self.d)
        ]
        return torch.from_numpy(np.concatenate(chunks))

    def dense(self, rows: Tensor) -> Tensor:
        """Return a few rows without the one at their end."""
        found = self._take(rows)
        return torch.from_numpy(found.toarray())[:, :-1] if self.sparse else found[:, :-1]

    def _take(self, rows: slice | Tensor) -> Any:
        return self.rows[rows.numpy() if self.sparse and isinstance(rows, Tensor) else rows]


def _plus(one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(a + b for a, b in zip(one, other, strict=True))
