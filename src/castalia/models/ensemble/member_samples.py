"""The batches of several members: each has its own rows in its own order.

Shapes: M members, S steps of an epoch, B rows of a batch, N rows, D inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from castalia.data.batches import Samples
from castalia.protocols import Batch
from castalia.utils.seeds import derive, generator

__all__ = ["MemberCuts", "MemberSamples"]


class MemberCuts:
    """How the rows of members are cut into the same number of batches.

    Members with equally many rows are cut as the loop cuts them; others into even parts, and what a
    part lacks is filled with rows of weight 0.

    Parameters
    ----------
    rows
        Number of rows of each member.
    batch_size
        Most rows of a batch.
    device
        Where the row numbers live.

    Examples
    --------
    >>> MemberCuts([10, 7], 4, torch.device("cpu")).sizes
    tensor([[3, 3, 4],
            [2, 2, 3]])
    """

    def __init__(self, rows: list[int], batch_size: int, device: Any) -> None:
        counts = torch.tensor(rows, device=device)[:, None]  # (M, 1)
        self.most = max(rows)
        self.steps = -(-self.most // batch_size)
        step = torch.arange(self.steps + 1, device=device)[None]
        if len(set(rows)) == 1:
            ends = (step * batch_size).clamp(max=self.most).expand(len(rows), -1)
        else:
            ends = step * counts // self.steps  # (M, S + 1)
        self.sizes = ends.diff(dim=1)  # (M, S)
        width = torch.arange(int(self.sizes.max()), device=device)
        self.positions = (ends[:, :-1, None] + width).clamp(max=self.most - 1)  # (M, S, B)
        self.real = width < self.sizes[:, :, None]
        self.widths = self.sizes.amax(dim=0).tolist()


@dataclass(frozen=True, kw_only=True)
class MemberSamples(Samples):
    """Rows that members share, of which each takes its own in its own order.

    A batch has a leading axis of members: x (M, B, D), y (M B, …), and weights (M, B) that sum to 1
    for each member.

    Attributes
    ----------
    kept
        Positions of each member's rows.
    seeds
        Of each member's shuffling.
    shares
        How often each member counts each row, (M, N); None: once.
    cuts, order
        Of the current epoch: how rows are cut into batches, and the members' orders, (M, most).
    """

    kept: Sequence[Tensor]
    seeds: Sequence[int]
    shares: Tensor | None = None
    cuts: MemberCuts | None = None
    order: Tensor | None = None

    def __len__(self) -> int:
        return max(len(rows) for rows in self.kept)

    def to(self, device: Any) -> MemberSamples:
        """Return the same samples held on a device."""
        shares = None if self.shares is None else self.shares.to(device)
        kept = [rows.to(device) for rows in self.kept]
        return replace(self, x=self.x.to(device), y=self.y.to(device), shares=shares, kept=kept)

    def n_batches(self, batch_size: int) -> int:
        """Number of batches in an epoch."""
        return -(-len(self) // batch_size)

    def batches(
        self, batch_size: int, seed: int | None, epoch: int, device: Any = "cpu"
    ) -> Iterator[tuple[Samples, Tensor, Sequence[int]]]:
        """Yield the epoch as one window of numbered steps; members have seeds of their own."""
        cuts = self.cuts
        if cuts is None:
            cuts = MemberCuts([len(rows) for rows in self.kept], batch_size, device)
            object.__setattr__(self, "cuts", cuts)
        order = torch.zeros(len(self.kept), cuts.most, dtype=torch.long, device=device)
        for i, (rows, own) in enumerate(zip(self.kept, self.seeds, strict=True)):
            if seed is not None:
                source = generator(derive(own, 0), epoch, device=device)
                rows = rows[torch.randperm(len(rows), generator=source, device=device)]
            order[i, : len(rows)] = rows
        yield replace(self, order=order), torch.arange(cuts.steps), list(range(cuts.steps + 1))

    def batch(self, index: Tensor, widths: tuple[int, ...] | None = None) -> Batch:
        """Return the batch of the step with this number."""
        chosen, counted = self.drawn(index)
        flat = chosen.flatten()
        x = self.x.take(flat).view(*chosen.shape, -1)
        share = counted / counted.sum(dim=1, keepdim=True)
        return Batch(x, self.y.index_select(0, flat), share.to(x.dtype))

    def drawn(self, index: Tensor) -> tuple[Tensor, Tensor]:
        """Return the positions of a step's rows and how often each counts, (M, B) both."""
        cuts: Any = self.cuts
        order: Any = self.order
        step = int(index)
        width = cuts.widths[step]
        chosen = order.gather(1, cuts.positions[:, step, :width])
        real = cuts.real[:, step, :width]
        return chosen, real if self.shares is None else self.shares.gather(1, chosen) * real
