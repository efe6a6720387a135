"""How the rows of several members are cut into the same number of batches.

Shapes: M members, S steps of an epoch, B rows of a batch, N rows.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["Batches"]


class Batches:
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
    >>> Batches([10, 7], 4, torch.device("cpu")).sizes
    tensor([[3, 3, 4],
            [2, 2, 3]])
    """

    def __init__(self, rows: list[int], batch_size: int, device: torch.device) -> None:
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

    def take(
        self, order: Tensor, weight: Tensor | None, step: int, *, mean: bool = True
    ) -> tuple[Tensor, Tensor]:
        """Return the row numbers of a step and each row's weight, as shares of 1 for a mean."""
        width = self.widths[step]
        real = self.real[:, step, :width]
        index = order.gather(1, self.positions[:, step, :width])  # (M, B)
        counted = real if weight is None else weight.gather(1, index) * real
        if not mean:
            return index, counted * 1.0
        return index, counted / counted.sum(dim=1, keepdim=True)
