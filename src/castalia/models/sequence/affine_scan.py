"""Affine recursions v_{t+1} = A_t v_t + b_t over many steps at once.

Time is cut into chunks that are worked through at the same time, first from zero, which gives what
each chunk adds, then from where the chunk before ends. The matrices come from a short table, since
those of a Kalman filter settle. Shapes: B sequences, T steps, C chunks of S steps, N = B C lanes,
D width.
"""

from __future__ import annotations

import torch
from torch import Tensor

from castalia.models.sequence.hidden_markov_scan import Lanes

__all__ = ["affine_scan", "plain_affine", "times"]


def plain_affine(table: Tensor, which: Tensor, offsets: Tensor, first: Tensor) -> Tensor:
    """Return v_1 … v_T, (B, T, D), one step after the other: the definition.

    Parameters
    ----------
    table
        Matrices, (I, D, D).
    which
        Number of each step's matrix, (B, T).
    offsets
        b, (B, T, D).
    first
        v_0, (B, D).
    """
    found, v = torch.empty_like(offsets), first
    for t in range(offsets.shape[1]):
        v = (table[which[:, t]] @ v[:, :, None])[..., 0] + offsets[:, t]
        found[:, t] = v
    return found


def affine_scan(table: Tensor, which: Tensor, offsets: Tensor, first: Tensor) -> Tensor:
    """Return what ``plain_affine`` returns."""
    b, t, d = offsets.shape
    if not t:
        return offsets
    lanes = Lanes.of(b, t, offsets.device)
    common = int(which.flatten().mode().values)
    steps = _Steps(table, lanes.spread(which, common), lanes.spread(offsets, 0.0), common)
    start = first
    if lanes.chunks > 1:
        local = steps.run(torch.zeros_like(steps.offsets[0]), keep=False)[-1]
        matrices = steps.products().view(b, lanes.chunks, d, d)
        local = local.view(b, lanes.chunks, d)
        starts = [first]
        for c in range(lanes.chunks - 1):
            starts.append((matrices[:, c] @ starts[-1][:, :, None])[..., 0] + local[:, c])
        start = torch.stack(starts, dim=1).reshape(-1, d)
    return lanes.gather(steps.run(start, keep=True))


class _Steps:
    """Steps in lanes: numbers of matrices (S, N) and offsets (S, N, D)."""

    def __init__(self, table: Tensor, which: Tensor, offsets: Tensor, common: int) -> None:
        self.table, self.which, self.offsets, self.common = table, which, offsets, common
        self.alike = (which == common).all(dim=1).tolist()  # steps at which all lanes agree

    def run(self, v: Tensor, *, keep: bool) -> Tensor:
        """Go along all lanes from v, (N, D); keep all steps, or the last only."""
        usual = self.table[self.common].T.contiguous()
        found = torch.empty_like(self.offsets if keep else self.offsets[:1])
        for s, alike in enumerate(self.alike):
            out = found[s if keep else 0]
            if alike:
                v = torch.addmm(self.offsets[s], v, usual)
            else:
                v = torch.baddbmm(
                    self.offsets[s][:, :, None], self.table[self.which[s]], v[:, :, None]
                )[..., 0]
            out.copy_(v)
        return found

    def products(self) -> Tensor:
        """Return the product of each lane's matrices, (N, D, D)."""
        s, n = self.which.shape
        found = torch.linalg.matrix_power(self.table[self.common], s).expand(n, -1, -1).clone()
        odd = (self.which != self.common).any(dim=0).nonzero()[:, 0]
        if len(odd):
            product = self.table[self.which[0, odd]]
            for step in range(1, s):
                product = self.table[self.which[step, odd]] @ product
            found[odd] = product
        return found


def times(table: Tensor, which: Tensor, vectors: Tensor) -> Tensor:
    """Return A_t v_t, (..., O), for matrices (I, O, D), numbers (...) and vectors (..., D)."""
    common = int(which.flatten().mode().values) if which.numel() else 0
    found = vectors @ table[common].T
    odd = which != common
    if bool(odd.any()):
        found[odd] = (table[which[odd]] @ vectors[odd][:, :, None])[..., 0]
    return found
