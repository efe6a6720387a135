"""Least squares of minimum norm for growing numbers of features, at the cost of a few fits.

With P features of n rows, the weights of N <= n features solve (F'F) W = F'Y: the matrix of the
first N features is the leading block of that of all, and so is its Cholesky factor, which is found
once. With N > n they are W = F'K^-1 Y, K = FF' a sum over features that only grows.
Shapes: n rows, m test rows, N features, T targets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

__all__ = ["predictions"]

Features = Callable[[int, int], tuple[Tensor, Tensor]]
BLOCK = 2000  # features at a time beyond n


def predictions(features: Features, Y: Tensor, sizes: Sequence[int]) -> list[tuple[Tensor, Tensor]]:
    """Return what the fits with the first N features say of the rows and of the test rows.

    Parameters
    ----------
    features
        From two numbers to the features between them, of the rows (n, N) and the test rows (m, N).
    Y
        Targets, (n, T).
    sizes
        Numbers of features, ascending.

    Examples
    --------
    >>> x = torch.eye(3, dtype=torch.float64)
    >>> found = predictions(lambda a, b: (x[:, a:b], x[:, a:b]), x[:, :1] + 1, [1, 3])
    >>> [train.ravel().tolist() for train, _ in found]
    [[2.0, 0.0, 0.0], [2.0, 1.0, 1.0]]
    """
    few = [size for size in sizes if size <= len(Y)]
    many = [size for size in sizes if size > len(Y)]
    return [*_few(features, Y, few), *_many(features, Y, many)]


def _few(features: Features, Y: Tensor, sizes: list[int]) -> list[tuple[Tensor, Tensor]]:
    if not sizes:
        return []
    F, test = features(0, sizes[-1])
    gram = _square(F.T)
    # The least that lets the factor exist where features are dependent to working precision
    gram.diagonal().add_(1e-15 * gram.trace())
    L = torch.linalg.cholesky(gram)
    found = []
    for N in sizes:
        W = torch.zeros(N, Y.shape[1], dtype=Y.dtype)
        for _ in range(3):  # refined: squaring F lost half of the digits
            W += torch.cholesky_solve(F[:, :N].T @ (Y - F[:, :N] @ W), L[:N, :N])
        found.append((F[:, :N] @ W, test[:, :N] @ W))
    return found


def _many(features: Features, Y: Tensor, sizes: list[int]) -> list[tuple[Tensor, Tensor]]:
    K = cross = torch.zeros(1, 1, dtype=Y.dtype)
    found, done = [], 0
    for N in sizes:
        while done < N:
            F, test = features(done, min(done + BLOCK, N))
            K, cross = K + _square(F), cross + test @ F.T  # (n, n), (m, n)
            done += F.shape[1]
        dual = torch.cholesky_solve(Y, torch.linalg.cholesky(K))
        found.append((Y, cross @ dual))
    return found


def _square(F: Tensor) -> Tensor:
    """Return the lower triangle of FF' and what comes with it: all that the factor reads."""
    n = len(F)
    square = F.new_zeros(n, n)
    edges = torch.linspace(0, n, 9).long().tolist()
    for start, stop in zip(edges, edges[1:], strict=False):
        square[start:stop, :stop] = F[start:stop] @ F[:stop].T
    return square
