"""The matrix of a least-squares problem: rows weighted and centred, but never stored so.

A = sqrt(w) (X - mean), B = sqrt(w) (Y - mean).  Rows are read a chunk at a time and worked on in
float64 whatever they are stored in, so a float32 matrix of any length needs one chunk of room.
Shapes: N rows, D features, T targets.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from scipy.sparse import diags_array, issparse
from scipy.sparse.linalg import LinearOperator
from torch import Tensor

from castalia.utils.devices import resolve_device

__all__ = ["Design"]

LOSSY = 1 - 1e-3  # share of the mean in a column's square above which three digits would be lost
CHUNK = {"cpu": 2**19, "cuda": 2**26}  # entries worked on at once: what a cache, or a GPU, holds


class Design:
    """Rows and targets of one least-squares problem.

    On a CPU the chunks are NumPy arrays, whose X^T X costs half of torch's; on a GPU, tensors.

    Parameters
    ----------
    X
        Rows as ``check_matrix`` gives them: an array, a tensor or CSR.
    Y
        Targets, (N, T).
    weight
        How often each row counts, or None.
    centre
        Whether to take the (weighted) means out, as a constant term does.
    device
        Where to work; sparse matrices stay on the CPU.

    Attributes
    ----------
    shape
        (N, D).
    total
        Sum of the weights.
    x_mean, y_mean
        What was taken out, (D,) and (T,), float64 tensors on the CPU.
    eps
        Rounding unit of the numbers as they were given.
    """

    def __init__(
        self, X: Any, Y: np.ndarray, weight: np.ndarray | None, *, centre: bool, device: Any
    ) -> None:
        self.sparse = issparse(X)
        self.device = torch.device("cpu") if self.sparse else _float64_device(device)
        self.shape: tuple[int, int] = tuple(X.shape)
        self.eps = 2.0**-23 if str(X.dtype).endswith("float32") else 2.0**-52
        self.X = X.astype(np.float64) if self.sparse else _placed(X, self.device)
        self.Y = _placed(np.asarray(Y, dtype=np.float64), self.device)
        self.root = None if weight is None else _placed(np.sqrt(weight)[:, None], self.device)
        self.total = float(self.shape[0] if weight is None else weight.sum())
        self._means = self._find_means() if centre else (0.0, 0.0)

    @property
    def x_mean(self) -> Tensor:
        """Mean of each feature, zeros where nothing was taken out."""
        return _tensor(self._means[0]).cpu().expand(self.shape[1])

    @property
    def y_mean(self) -> Tensor:
        """Mean of each target."""
        return _tensor(self._means[1]).cpu().expand(self.Y.shape[1])

    def _find_means(self) -> tuple[Any, Any]:
        if self.sparse:
            weight = np.ones(self.shape[0]) if self.root is None else self.root[:, 0] ** 2
            return self.X.T @ weight / self.total, weight @ self.Y / self.total
        x = y = 0.0
        for span in self._spans():
            rows, targets = _float64(self.X[span]), self.Y[span]
            if self.root is None:
                x, y = x + rows.sum(0), y + targets.sum(0)
            else:
                weight = self.root[span, 0] ** 2
                x, y = x + weight @ rows, y + weight @ targets
        return x / self.total, y / self.total

    def _spans(self) -> Iterator[slice]:
        n, d = self.shape
        step = max(CHUNK.get(self.device.type, CHUNK["cpu"]) // d, 2 * d, 1)
        return (slice(start, start + step) for start in range(0, n, step))

    def chunks(self, *, centred: bool = True) -> Iterator[tuple[Any, Any]]:
        """Yield A, with or without its means, and B a few rows at a time, (C, D) and (C, T)."""
        for span in self._spans():
            rows = self.X[span].toarray() if self.sparse else _float64(self.X[span])
            A, B = rows - self._means[0] if centred else rows, self.Y[span] - self._means[1]
            if self.root is not None:
                A, B = A * self.root[span], B * self.root[span]
            yield A, B

    def whole(self) -> tuple[Tensor, Tensor]:
        """Return A and B as tensors; for problems with few rows."""
        parts = [(_tensor(A), _tensor(B)) for A, B in self.chunks()]
        return torch.cat([A for A, _ in parts]), torch.cat([B for _, B in parts])

    def moments(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return A^T A (D, D), A^T B (D, T) and the squared lengths of B's columns (T,).

        Means come out of the sums afterwards, which spares a copy of the rows, unless columns lie
        so far from zero that this would cost digits.
        """
        gram, cross, square = self._sums(centred=False)
        mean = self.x_mean.to(gram.device)
        lost = self.total * mean.square() > LOSSY * gram.diagonal()
        if lost.any():
            return self._sums(centred=True)
        return gram.sub_(torch.outer(self.total * mean, mean)), cross, square

    def _sums(self, *, centred: bool) -> tuple[Tensor, Tensor, Tensor]:
        """Return the moments, of rows with or without their means."""
        if self.sparse and not centred:
            rows, B = self._rooted(), self.targets()
            return _tensor((rows.T @ rows).toarray()), _tensor(rows.T @ B), _tensor((B * B).sum(0))
        gram = cross = square = 0.0
        for A, B in self.chunks(centred=centred):
            gram, cross, square = gram + A.T @ A, cross + A.T @ B, square + (B * B).sum(0)
        return _tensor(gram), _tensor(cross), _tensor(square)

    def triangle(self) -> tuple[Tensor, Tensor]:
        """Return R (K, D) and Z (K, T) with |A w - b| = |R w - z| + constant, K at most D + T.

        The triangular factor of [A B], gathered chunk by chunk: it keeps the digits that A^T A
        loses.
        """
        found = torch.empty(0, device=self.device)
        for A, B in self.chunks():
            rows = torch.cat([_tensor(A), _tensor(B)], dim=1)
            stacked = rows if found.numel() == 0 else torch.cat([found, rows])
            found = torch.linalg.qr(stacked, mode="r").R
        return found[:, : self.shape[1]], found[:, self.shape[1] :]

    def correlation(self, W: Tensor) -> Tensor:
        """Return A^T (B - A W), half the negative gradient of the squared error, (D, T)."""
        if self.sparse:
            A = self.operator()
            return _tensor(A.rmatmat(self.targets() - A.matmat(W.numpy())))
        weights = W.numpy() if isinstance(self.X, np.ndarray) else W
        found = 0.0
        for A, B in self.chunks():
            found = found + A.T @ (B - A @ weights)
        return _tensor(found)

    def columns(self, index: np.ndarray) -> Tensor:
        """Return A^T A of some columns only, (K, K)."""
        if self.sparse:
            rows, mean = self._rooted()[:, index], self.x_mean.numpy()[index]
            return _tensor((rows.T @ rows).toarray() - self.total * np.outer(mean, mean))
        part = object.__new__(Design)
        part.__dict__ = {**vars(self), "X": self.X[:, index], "shape": (self.shape[0], len(index))}
        x_mean = self._means[0] if isinstance(self._means[0], float) else self._means[0][index]
        part._means = (x_mean, self._means[1])
        return part.moments()[0]

    def operator(self) -> LinearOperator:
        """Return a sparse A as a linear operator: the mean is taken out without filling it in."""
        rows, mean = self._rooted(), self.x_mean.numpy()
        root = np.ones(self.shape[0]) if self.root is None else self.root[:, 0]

        def forward(v: np.ndarray) -> np.ndarray:
            return rows @ v - np.multiply.outer(root, mean @ v)

        def backward(u: np.ndarray) -> np.ndarray:
            return rows.T @ u - np.multiply.outer(mean, root @ u)

        return LinearOperator(
            self.shape,
            matvec=lambda v: forward(v.ravel()),
            rmatvec=lambda u: backward(u.ravel()),
            matmat=forward,
            rmatmat=backward,
            dtype=np.float64,
        )

    def _rooted(self) -> Any:
        return self.X if self.root is None else diags_array(self.root[:, 0]) @ self.X

    def targets(self) -> Any:
        """Return B, (N, T)."""
        B = self.Y - self._means[1]
        return B if self.root is None else B * self.root


def _float64_device(device: Any) -> torch.device:
    found = resolve_device(device)
    return torch.device("cpu") if found.type == "mps" else found  # which has no float64


def _placed(values: Any, device: torch.device) -> Any:
    """Return values as an array, on a CPU, or as a tensor on the device."""
    if device.type == "cpu":
        return values.cpu().numpy() if isinstance(values, Tensor) else values
    if isinstance(values, np.ndarray):
        values = torch.from_numpy(np.require(values, requirements=["C", "W"]))
    return values.to(device)


def _float64(values: Any) -> Any:
    if isinstance(values, Tensor):
        return values.to(torch.float64)
    return values.astype(np.float64, copy=False)


def _tensor(values: Any) -> Tensor:
    return values if isinstance(values, Tensor) else torch.as_tensor(values, dtype=torch.float64)
