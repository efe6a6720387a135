"""The ends of a spectrum, run by run: what one run of Lanczos overlooks, a later one finds.

A run from one random vector sees one eigenvector of a repeated eigenvalue, and may skip others. So
the pairs it found are locked, and another run begins in the rest of the space, from a random vector
of its own, until a run shows that nothing is left beyond the k-th value.

With A V_r = V_r Theta_r + R_r in run r and B what A is outside of all V, Weyl's inequality holds
the eigenvalues of A within sum_r ||R_r|| of those of all Theta_r and of B, rank by rank. B has none
beyond x, up to a chance of 1e-6, where the Christoffel function of a run says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from castalia.autodiff.spectra.lanczos import Krylov, lanczos

__all__ = ["CHANCE", "End", "Search"]

CHANCE = 1e-6  # that a run overlooks an eigenvalue which it excludes
SHARE = 0.45  # of the tolerance, for the residuals and for what lies between value and line
ROUNDING = 64  # times the smallest difference of two numbers that is believed


@dataclass
class End:
    """One end of the spectrum.

    Attributes
    ----------
    sign
        1 for the largest values, -1 for the smallest.
    slack
        How far beyond the k-th value nothing is excluded; infinite as long as nothing is.
    norm
        Sum of the ||R_r|| when it was.
    """

    sign: int
    slack: float = math.inf
    norm: float = 0.0

    @property
    def is_open(self) -> bool:
        """Whether values may be missing."""
        return self.slack == math.inf


class Search:
    """Looks for the k outermost eigenvalues at some ends of an operator's spectrum.

    Parameters
    ----------
    product
        v -> A v, with A symmetric.
    draw
        Gives a standard normal vector (n,).
    k
        Values at each end.
    signs
        The ends: 1, -1 or both.
    tol
        Largest error, as a share of the largest absolute eigenvalue.
    max_steps
        Most products.
    """

    def __init__(
        self,
        product: Callable[[Tensor], Tensor],
        draw: Callable[[], Tensor],
        k: int,
        signs: Sequence[int],
        tol: float,
        max_steps: int,
    ) -> None:
        self.product, self.draw, self.k, self.tol = product, draw, k, tol
        self.max_steps = max_steps
        self.ends = [End(sign) for sign in signs]
        self.values = torch.zeros(0, dtype=torch.float64)
        self.norm = 0.0  # sum of ||R_r||
        self.scale = 0.0  # largest absolute Ritz value
        self.steps = self.runs = 0
        start = draw()
        self.locked = start.new_empty(0, start.numel())  # (L, n)
        self._run(start)

    @property
    def converged(self) -> bool:
        """Whether every value is within the tolerance of the eigenvalue of its rank."""
        return all(self.errors(end).max() <= self.tol * self.scale for end in self.ends)

    def top(self, end: End) -> Tensor:
        """Return the places of the outermost values, the first being the most extreme."""
        return (end.sign * self.values).argsort(descending=True, stable=True)[: self.k]

    def errors(self, end: End) -> Tensor:
        """Return bounds on the distance to the eigenvalues of the same ranks, infinite if open."""
        values = end.sign * self.values[self.top(end)]
        beyond = (values[-1] + end.slack - values).clamp_min(0)
        return beyond + end.norm + self._rounding()

    def _run(self, start: Tensor) -> None:
        while True:
            self.runs += 1
            steps = self.max_steps - self.steps
            found = lanczos(self.product, start, steps, done=self._done, locked=self.locked)
            self.steps += len(found.alpha)
            self._close(found)
            exhausted = len(self.values) + len(found.alpha) == start.numel()
            spent = self.steps >= self.max_steps
            self._lock(found, everything=exhausted, unfinished=spent)
            for end in self.ends if exhausted else ():
                end.slack, end.norm = 0.0, self.norm
            if spent or not any(end.is_open for end in self.ends):
                return
            start = self.draw()

    def _done(self, found: Krylov) -> bool:
        """Whether what each open end lacks is excluded, or has converged and can be locked."""
        values, residuals, _ = found.ritz()
        self.scale = max(self.scale, values.abs().max().item())
        wanted = torch.zeros(len(values), dtype=torch.bool)
        for end in self.ends:
            if end.is_open and self._excluded(end, found, values) == math.inf:
                places = self._members(end, values)
                if len(places) in (0, len(values)):  # more steps will show
                    return False
                wanted[places] = True
        return bool(residuals[wanted].norm() <= self._budget())

    def _close(self, found: Krylov) -> None:
        """Note which ends the run shows to be complete."""
        values, _, _ = found.ritz()
        self.scale = max(self.scale, values.abs().max().item())
        for end in self.ends:
            if end.is_open:
                end.slack, end.norm = self._excluded(end, found, values), self.norm

    def _excluded(self, end: End, found: Krylov, values: Tensor) -> float:
        """Return how far beyond the k-th locked value nothing is left, or infinity."""
        furthest = (end.sign * values).max().item()
        for slack in (0.0, SHARE * self.tol * self.scale):
            line = self._line(end) + slack
            if furthest <= line and found.excludes(end.sign * line, CHANCE):
                return slack
        return math.inf

    def _line(self, end: End) -> float:
        """Return the k-th locked value, times the sign of the end."""
        if len(self.values) < self.k:
            return -math.inf
        return end.sign * self.values[self.top(end)[-1]].item()

    def _members(self, end: End, values: Tensor) -> Tensor:
        """Return the places of Ritz values among the k outermost, if one is beyond the line."""
        both = end.sign * torch.cat([self.values, values])
        first = both.argsort(descending=True, stable=True)[: self.k]
        if both[len(self.values) :].max() <= self._line(end) + SHARE * self.tol * self.scale:
            return first[:0]
        return first[first >= len(self.values)] - len(self.values)

    def _lock(self, found: Krylov, everything: bool, unfinished: bool) -> None:
        """Keep the pairs that open ends want and that have converged.

        ``everything`` keeps all pairs, ``unfinished`` also those that have not converged.
        """
        values, residuals, coordinates = found.ritz()
        wanted = torch.full((len(values),), everything)
        for end in self.ends:
            if end.is_open:
                wanted[self._members(end, values)] = True
        if not (everything or unfinished):
            wanted &= residuals <= self._budget()
        self.norm += residuals[wanted].norm().item()
        self.values = torch.cat([self.values, values[wanted]])
        self.locked = torch.cat([self.locked, found.vectors(coordinates[:, wanted])])

    def _budget(self) -> float:
        """What the residuals of this run may amount to; over all runs the sum is the share."""
        share = SHARE * self.tol * self.scale
        return max(share / (self.runs * (self.runs + 1)), self._rounding())

    def _rounding(self) -> float:
        return ROUNDING * torch.finfo(self.locked.dtype).eps * self.scale
