"""Rows that are the same, and whether that can be chance."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from castalia.diagnose.thresholds import limit

__all__ = ["by_chance", "row_keys"]


def row_keys(x: Tensor) -> list[bytes]:
    """Return one key a row: its bytes in float32."""
    table = x.reshape(len(x), -1).float().cpu().numpy() + 0.0  # no negative zero
    return [row.tobytes() for row in np.ascontiguousarray(table)]


def by_chance(x: Tensor) -> bool:
    """Whether rows have so few values that they coincide without anyone copying them.

    The entropies of the columns add up to at least that of the rows; n rows meet n others by
    chance when it is not well above 2 log2 n bits. A column of measurements, no two of which are
    equal, settles it; a single one may be a grid that both sides use.

    Examples
    --------
    >>> import torch
    >>> x = torch.randn(100, 3, generator=torch.Generator().manual_seed(0))
    >>> by_chance(x), by_chance(x > 0)
    (False, True)
    """
    flat = x.reshape(len(x), -1).float().cpu().numpy()
    wanted = 2 * np.log2(max(2, len(flat))) + limit("examine.natural_bits")
    bits = 0.0
    for column in flat.T:
        _, counts = np.unique(column, return_counts=True)
        if len(counts) > limit("examine.distinct") * len(column) and flat.shape[1] > 1:
            return False
        p = counts / counts.sum()
        bits -= float((p * np.log2(p)).sum())
        if bits > wanted:
            return False
    return True
