"""The design matrix [X, 1] as three products, dense on any device or scipy-sparse.

Shapes: N rows, D features, K outputs, P = D + 1 with an intercept and D without.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.sparse import diags_array, issparse
from torch import Tensor

__all__ = ["Affine"]


class Affine:
    """Rows with a constant column that is never written out.

    Parameters
    ----------
    X
        Rows: a tensor where it is to be computed with, or CSR.
    intercept
        Whether the constant column is there.
    """

    def __init__(self, X: Any, intercept: bool) -> None:
        self.X, self.intercept = X, intercept
        self.sparse = issparse(X)
        self.shape = (X.shape[0], X.shape[1] + intercept)
        self.dtype = torch.from_numpy(np.empty(0, X.dtype)).dtype if self.sparse else X.dtype
        self.device = torch.device("cpu") if self.sparse else X.device

    def zeros(self, outputs: int) -> Tensor:
        """Return parameters of zero, (K, P)."""
        return torch.zeros(outputs, self.shape[1], dtype=self.dtype, device=self.device)

    def thin(self, every: int) -> Affine:
        """Return each ``every``-th row."""
        X = self.X[::every]
        return Affine(X if self.sparse else X.contiguous(), self.intercept)

    def forward(self, theta: Tensor) -> Tensor:  # (K, P)
        """Return the outputs [X, 1] theta^T, (N, K)."""
        weight = theta[:, : self.X.shape[1]]
        found = torch.from_numpy(self.X @ weight.T.numpy()) if self.sparse else self.X @ weight.T
        return found.add_(theta[:, -1]) if self.intercept else found

    def backward(self, R: Tensor) -> Tensor:  # (N, K)
        """Return R^T [X, 1], (K, P)."""
        found = torch.from_numpy((self.X.T @ R.numpy()).T) if self.sparse else R.T @ self.X
        return torch.cat([found, R.sum(dim=0)[:, None]], dim=1) if self.intercept else found

    def row_triangle(self, block: int = 4096) -> Tensor:
        """Return R of X^T = Q R, (N, N), from some columns of X at a time.

        Between two blocks Ctrl-C is obeyed, and of sparse rows only one block is ever dense.
        """
        X = self.X.tocsc() if self.sparse else self.X
        if self.sparse:
            X = X[:, np.flatnonzero(np.diff(X.indptr))]
        rows, columns = X.shape
        R = torch.zeros(rows, rows, dtype=self.dtype, device=self.device)
        for start in range(0, columns, block):
            part = X[:, start : start + block]
            part = torch.from_numpy(part.toarray()) if self.sparse else part
            R = torch.linalg.qr(torch.cat([R, part.T]), mode="r")[1]
        return R

    def gram(self, h: Tensor) -> Tensor:  # (N,)
        """Return [X, 1]^T diag(h) [X, 1], (P, P)."""
        if self.sparse:
            scaled = diags_array(h.numpy()) @ self.X
            found = torch.from_numpy((self.X.T @ scaled).toarray())
            edge = torch.from_numpy(self.X.T @ h.numpy())
        else:
            found = (self.X * h[:, None]).T @ self.X
            edge = h @ self.X
        if not self.intercept:
            return found
        corner = torch.cat([edge, h.sum()[None]])
        return torch.cat([torch.cat([found, edge[:, None]], dim=1), corner[None]], dim=0)
