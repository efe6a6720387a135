"""How much work a step is, and how many rows fit into one without gradients."""

from __future__ import annotations

import math

import torch
from torch import nn

__all__ = ["evaluation_rows", "step_work"]

EVALUATION_ROWS, EVALUATION_NUMBERS = 4096, 1 << 22  # of a batch without gradients
PADDED_ROWS = 256  # of such a batch, where fewer rows are less padded


def step_work(net: nn.Module, row: torch.Size, batch_size: int) -> float:
    """Estimate the multiply-adds of a step: weights times rows times positions in a row."""
    positions = math.prod(row[1:]) if len(row) > 1 else 1
    return float(sum(p.numel() for p in net.parameters()) * batch_size * positions)


def evaluation_rows(row: torch.Size, most: int | None = None, *, padded: bool = False) -> int:
    """Return how many rows are evaluated at once: fewer of images than of short rows.

    Parameters
    ----------
    row
        Shape of a row.
    most
        Rows of the shortest kind; None: as many as a training evaluates at once.
    padded
        Whether rows are padded to the longest among them.
    """
    if most is None:
        most = PADDED_ROWS if padded else EVALUATION_ROWS
    return max(1, min(most, EVALUATION_NUMBERS // max(1, row.numel())))
