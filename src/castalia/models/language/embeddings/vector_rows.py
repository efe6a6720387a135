"""Tables of which a step reads and writes only some rows."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["add_rows", "move_rows", "start_vectors"]


def start_vectors(n_rows: int, dim: int, random: torch.Generator) -> Tensor:
    """Return vectors to start from, (n_rows, D): numbers between ±1 / (2 D)."""
    drawn = torch.rand(n_rows, dim, generator=random, device=random.device)
    return (drawn - 0.5) / dim


def add_rows(table: Tensor, index: Tensor, rows: Tensor) -> Tensor:
    """Add rows to those of a table, the same way every time; return the table.

    On CUDA they are sorted first, since sums by atomic additions differ from run to run.
    """
    if table.is_cuda:
        return table.index_put_((index,), rows, accumulate=True)
    return table.index_add_(0, index, rows)


def move_rows(table: Tensor, index: Tensor, moves: Tensor, lr: float, most: Tensor) -> None:
    """Add moves, (n, D), to the rows of a table, each times the smaller of lr and its most."""
    moves *= most[index].clamp_(max=lr)[:, None]
    add_rows(table, index, moves)
