"""The least-mean-squares rule of Widrow and Hoff, example after example, a block at a time.

e_n = y_n - w_n x_n,  w_{n+1} = w_n + c_n e_n x_n.  Over a block of rows X that starts at w, with
Gram matrix G = X X^T, the errors of the rule obey
    e_n + sum_{m < n} G_nm c_m e_m = y_n - w x_n,
a triangular system. Solving it gives exactly the errors and the weights of the rule, in a handful
of matrix products instead of a loop over rows.
Reference: 1960, Widrow, Hoff, Adaptive switching circuits, IRE WESCON 4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from castalia.errors import Diverged

__all__ = ["lms"]

BLOCK = 64
Blocks = Iterator[tuple[Tensor, Tensor, Tensor]]


def lms(blocks: Callable[[int], Blocks], W: Tensor, *, owner: str, lr: float) -> Tensor:
    """Run the rule over all rows in order; W is changed in place.

    Parameters
    ----------
    blocks
        From the size of a block to an iterator of rows (B, P), targets (B, K) and steps (B,).
    W
        Weights, (K, P).
    owner, lr
        Who asks and with which rate, to be named if the rule diverges.

    Returns
    -------
    Tensor
        The error of every example before its own correction, (N, K).
    """
    errors = []
    for X, y, step in blocks(BLOCK):
        system = (X @ X.T * step).tril(-1)
        e = torch.linalg.solve_triangular(  # the diagonal of ones is understood
            system, y - X @ W.T, upper=False, unitriangular=True
        )
        W += (e * step[:, None]).T @ X
        errors.append(e)
    if not W.isfinite().all():
        raise Diverged(
            f"{owner}: the weights grew without bound with `lr` = {lr:g}. Take a smaller one, or "
            "leave `lr` at None.",
            step=sum(len(e) for e in errors),
            epoch=0,
            term="error",
            lr=lr,
        )
    return torch.cat(errors)
