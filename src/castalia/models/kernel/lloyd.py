"""Lloyd's iteration: rows go to the nearest centre, centres to the mean of their rows.

|x - c|^2 = |x|^2 + (|c|^2 - 2 c.x), and the bracket is one matrix product for all rows and centres.
The sums of the clusters are kept from step to step: only rows that changed their cluster are added
and taken away. Shapes: N rows, D features, K clusters, B rows of a chunk.

Reference: 1982, Lloyd, Least squares quantization in PCM, IEEE Transactions on Information Theory
28.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from castalia.models.kernel.points import Points

__all__ = ["Clustering", "distances", "lloyd", "nearest"]


@dataclass(frozen=True)
class Clustering:
    """Where the iteration ended.

    Attributes
    ----------
    centers
        (K, D), from the mean of the rows.
    labels
        Nearest centre of each row, (N,).
    inertia
        Weighted sum of squared distances to it.
    steps
        Steps taken.
    converged
        Whether it stopped by itself.
    """

    centers: Tensor
    labels: Tensor
    inertia: float
    steps: int
    converged: bool


def lloyd(points: Points, centers: Tensor, *, tol: float, steps: int) -> Clustering:
    """Iterate until the labels repeat or the centres rest.

    Parameters
    ----------
    points
        The rows.
    centers
        Where to begin, (K, D), from the mean of the rows.
    tol
        Stop when the squared movements of all centres sum to no more than this.
    steps
        Most steps.
    """
    state, step = _State(points, centers), 1
    while not (rested := state.move() <= tol) and step < steps:
        step += 1
        if not state.assign():
            return state.ended(step, converged=True)
    state.assign()
    return state.ended(step, converged=rested)


def nearest(points: Points, centers: Tensor) -> Tensor:
    """Return each row's nearest centre, (N,)."""
    return torch.cat([value.min(dim=0).indices for _, value in _values(points, centers)])


def distances(points: Points, centers: Tensor) -> Tensor:
    """Return |x - c| of every centre and row, (K, N)."""
    found = centers.new_empty(len(centers), points.n)
    square = centers.square().sum(dim=1, keepdim=True)
    for rows, value in _values(points, centers):
        norms = points.norms[rows]
        value += norms
        # |x|^2 + |c|^2 - 2 c.x has lost its digits where x is close to c: take the difference
        k, row = (value < 1e-4 * (norms + square)).nonzero(as_tuple=True)
        apart = points.dense(row + rows.start) - centers[k]
        value[k, row] = apart.square().sum(dim=1)
        found[:, rows] = value.sqrt_()
    return found


def _values(points: Points, centers: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """Yield chunks of rows with |c|^2 - 2 c.x of every centre, (K, B)."""
    maps = torch.cat([-2 * centers, centers.square().sum(dim=1, keepdim=True)], dim=1)
    for rows in points.chunks(len(centers)):
        yield rows, points.affine(maps, rows)


class _State:
    """Labels, centres, and the sums of rows that the labels give."""

    def __init__(self, points: Points, centers: Tensor) -> None:
        self.points, self.centers = points, centers
        self.number = torch.arange(len(centers), device=centers.device)[:, None]
        self.labels = nearest(points, centers)
        self.sums = centers.new_zeros(len(centers), points.d + 1, dtype=torch.float64)
        for rows in points.chunks(len(centers)):
            mine = (self.number == self.labels[rows]).to(centers)  # (K, B)
            self.sums += points.total(mine * points.weight[rows], rows)

    def assign(self) -> int:
        """Give every row its nearest centre; return how many changed."""
        return sum(self._assign(*chunk) for chunk in _values(self.points, self.centers))

    def _assign(self, rows: slice, value: Tensor) -> int:
        own = value.gather(0, self.labels[None, rows])[0]
        other = (own > value.amin(dim=0)).nonzero()[:, 0]
        if len(other):
            self._transfer(other + rows.start, value[:, other].min(dim=0).indices)
        return len(other)

    def _transfer(self, rows: Tensor, new: Tensor) -> None:
        """Take rows out of the sums of their old clusters and into those of the new."""
        old = self.labels[rows]
        share = (self.number == new).to(self.centers) - (self.number == old).to(self.centers)
        self.sums += self.points.total(share * self.points.weight[rows], rows)
        self.labels[rows] = new

    def move(self) -> float:
        """Put every centre on the mean of its rows; return the sum of squared movements."""
        if (self.sums[:, -1] <= 0).any():
            self._fill_empty()
        count = self.sums[:, -1:]
        means = torch.where(count > 0, self.sums[:, :-1] / count, self.centers)
        before, self.centers = self.centers, means.to(self.centers)
        return float((self.centers.double() - before.double()).square().sum())

    def _fill_empty(self) -> None:
        """Give each empty cluster the row that lies farthest from its centre."""
        empty = (self.sums[:, -1] <= 0).nonzero()[:, 0]
        squares = self.points.squares(self.centers, self.labels)
        far, rows = (squares * (self.points.weight > 0)).topk(min(len(empty), self.points.n))
        rows = rows[far > 0]
        if len(rows):
            self._transfer(rows, empty[: len(rows)])

    def ended(self, steps: int, *, converged: bool) -> Clustering:
        """Return where it stands, with the inertia from the differences themselves."""
        squares = self.points.squares(self.centers, self.labels).double()
        inertia = float(squares @ self.points.weight.double())
        return Clustering(self.centers, self.labels, inertia, steps, converged)
