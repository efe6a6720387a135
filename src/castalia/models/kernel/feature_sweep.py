"""Least squares on the first m random waves, for many m at the price of a few.

The waves of a smaller model are the first ones of a larger, so the Gram matrices grow: below N
features the small one, A^H A, is a corner of the large; from N on, A A^H gains one block of
features after the other. Each size then costs one Cholesky factor. All sizes share two passes over
the features, one for the matrices and one for the predictions.
Shapes: N rows, F features, T targets, S sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from castalia.models.kernel.least_norm import gram, least_norm
from castalia.nn import fourier_features

__all__ = ["Problem", "Sweep", "sweep", "waves"]

FEW = 1024  # rows for which every size is solved on its own, by singular values where need be
BLOCK = 1024  # frequencies, or rows, that are turned into features at a time


@dataclass(frozen=True)
class Sweep:
    """Errors of models with more and more random waves.

    Attributes
    ----------
    frequencies
        Numbers m of frequencies, (S,), rising.
    features
        Numbers F of features: 2 m real ones or m complex ones, (S,).
    train_error, test_error
        Mean squared errors, (S,).
    norm
        |w| of each model, (S,).
    predictions
        Values on the test rows, (S, N_test, T).
    """

    frequencies: np.ndarray
    features: np.ndarray
    train_error: np.ndarray
    test_error: np.ndarray
    norm: np.ndarray
    predictions: np.ndarray


@dataclass(frozen=True)
class Problem:
    """What all sizes share."""

    X: Tensor
    Y: Tensor
    X_test: Tensor
    frequencies: Tensor
    coding: str
    alpha: float

    @property
    def per(self) -> int:
        """Features of one frequency."""
        return 2 if self.coding == "real" else 1

    def blocks(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Cut a range of frequencies into pieces."""
        return ((i, min(i + BLOCK, stop)) for i in range(start, stop, BLOCK))

    def waves(self, x: Tensor, start: int, stop: int) -> Tensor:
        """Return the features of some frequencies."""
        return waves(x, self.frequencies[start:stop].to(x), self.coding)

    def ordered(self, x: Tensor, cuts: Sequence[int]) -> Tensor:
        """Return features such that those of every size in ``cuts`` come first."""
        ends = zip([0, *cuts], cuts, strict=False)
        return torch.cat([self.waves(x, start, stop) for start, stop in ends], dim=1)


def waves(x: Tensor, frequencies: Tensor, coding: str) -> Tensor:
    """Return cosines and sines, (B, 2 M), or exp(i v.x), (B, M), in double precision."""
    if coding == "complex":
        return torch.exp(1j * (x @ frequencies.T).double())
    return fourier_features(x, frequencies).double().mul_(len(frequencies) ** 0.5)


def sweep(problem: Problem, Y_test: Tensor, sizes: Sequence[int]) -> Sweep:
    """Solve for every size and compare."""
    if len(problem.X) <= FEW:
        found = [_alone(problem, m) for m in sizes]
    else:
        low = [m for m in sizes if problem.per * m < len(problem.X)]
        found = [*_below(problem, low), *_beyond(problem, [m for m in sizes if m not in low])]
    train, test, norm = zip(*found, strict=True)
    return Sweep(
        np.array(sizes),
        problem.per * np.array(sizes),
        np.array([float((part - problem.Y).square().mean()) for part in train]),
        np.array([float((part - Y_test).square().mean()) for part in test]),
        np.array(norm),
        torch.stack(test).cpu().numpy(),
    )


Fit = tuple[Tensor, Tensor, float]  # values on training and test rows, norm of the weights


def _alone(problem: Problem, m: int) -> Fit:
    """Solve one size by itself."""
    A, A_test = (problem.waves(x, 0, m) for x in (problem.X, problem.X_test))
    W, _ = least_norm(A, problem.Y.to(A), problem.alpha * m)
    return (A @ W).real, (A_test @ W).real, m**0.5 * float(torch.linalg.vector_norm(W))


def _below(problem: Problem, sizes: Sequence[int]) -> Iterator[Fit]:
    """Solve sizes with fewer features than rows: W = (A^H A + alpha I)^-1 A^H Y."""
    if not sizes:
        return
    first = problem.ordered(problem.X[:1], sizes)
    G = first.new_zeros(first.shape[1], first.shape[1])
    rhs = first.new_zeros(first.shape[1], problem.Y.shape[1])
    for x, y in zip(problem.X.split(BLOCK), problem.Y.split(BLOCK), strict=True):
        A = problem.ordered(x, sizes)
        gram(A.mH, out=G)
        rhs += A.mH @ y.to(A)
    ends = [problem.per * m for m in sizes]
    weights = [
        _solve(G[:f, :f], rhs[:f], problem.alpha * m) for f, m in zip(ends, sizes, strict=True)
    ]
    values = [_values(problem, x, sizes, weights) for x in (problem.X, problem.X_test)]
    for m, W, train, test in zip(sizes, weights, *values, strict=True):
        yield train, test, m**0.5 * float(torch.linalg.vector_norm(W))


def _values(
    problem: Problem, X: Tensor, sizes: Sequence[int], weights: Sequence[Tensor]
) -> list[Tensor]:
    """Return A W of all rows for each size."""
    parts = []
    for x in X.split(BLOCK):
        A = problem.ordered(x, sizes)
        parts.append([(A[:, : len(W)] @ W).real for W in weights])
    return [torch.cat(part) for part in zip(*parts, strict=True)]


def _beyond(problem: Problem, sizes: Sequence[int]) -> Iterator[Fit]:
    """Solve sizes with as many features as rows or more: W = A^H (A A^H + alpha I)^-1 Y."""
    if not sizes:
        return
    duals = _duals(problem, sizes)
    shape = (len(sizes), -1, problem.Y.shape[1])
    train = problem.Y.new_zeros(len(problem.X) * len(sizes) * shape[2]).view(shape)
    test = problem.Y.new_zeros(len(problem.X_test) * len(sizes) * shape[2]).view(shape)
    square = [0.0] * len(sizes)
    for at, (start, stop) in _pieces(problem, sizes):
        A, A_test = (problem.waves(x, start, stop) for x in (problem.X, problem.X_test))
        for s in range(at, len(sizes)):
            W = A.mH @ duals[s]
            train[s] += (A @ W).real
            test[s] += (A_test @ W).real
            square[s] += float(W.abs().square().sum())
    for s, m in enumerate(sizes):
        yield train[s], test[s], (m * square[s]) ** 0.5


def _duals(problem: Problem, sizes: Sequence[int]) -> list[Tensor]:
    """Return (A A^H + alpha I)^-1 Y, (N, T), for each size."""
    K, found = None, []
    for at, (start, stop) in _pieces(problem, sizes):
        K = gram(problem.waves(problem.X, start, stop), out=K)
        if stop == sizes[at]:
            found.append(_solve(K, problem.Y.to(K), problem.alpha * stop))
    return found


def _pieces(problem: Problem, sizes: Sequence[int]) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield blocks of frequencies with the first size that has them."""
    for at, (start, stop) in enumerate(zip([0, *sizes], sizes, strict=False)):
        for piece in problem.blocks(start, stop):
            yield at, piece


def _solve(G: Tensor, rhs: Tensor, alpha: float) -> Tensor:
    """Solve with a Gram matrix; one that rounding left indefinite gets the least that helps."""
    plain = G.diagonal().clone()
    extra = torch.finfo(plain.real.dtype).eps * float(plain.real.sum())
    G.diagonal().add_(alpha)
    root, failed = torch.linalg.cholesky_ex(G)
    while failed:
        G.diagonal().add_(extra)
        extra *= 10
        root, failed = torch.linalg.cholesky_ex(G)
    G.diagonal().copy_(plain)
    return torch.cholesky_solve(rhs, root)
