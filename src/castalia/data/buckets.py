"""Batches of rows of like lengths, so that little of a batch is padding.

Rows are shuffled, sorted by length inside pools of many batches, cut into batches, and the batches
are shuffled: each batch is padded to its own longest row, and what stands beside what still differs
from epoch to epoch.
Shapes: N rows, S sides that are padded (inputs, or inputs and targets).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

__all__ = ["fixed_widths", "grouped", "packed", "padding_share", "widths_of"]

POOL = 50  # batches that are sorted by length together
POOLS = 4  # at least: with fewer, every epoch would meet the same batches
WIDTHS = 8  # lengths to which batches are padded where shapes must be few


def grouped(lengths: Tensor, size: int, source: torch.Generator) -> Tensor:
    """Return an order of rows, (N,), in which each ``size`` neighbours have like lengths.

    A short last batch stays last. Where there are fewer than eight batches, rows are only shuffled.

    Examples
    --------
    >>> lengths = torch.arange(40) % 10
    >>> order = grouped(lengths, 2, torch.Generator().manual_seed(0))
    >>> float(padding_share(lengths, order.split(2))) < 0.2
    True
    """
    order = torch.randperm(len(lengths), generator=source)
    whole = len(lengths) // size
    pool = min(POOL, whole // POOLS) * size  # rows
    if pool <= size:
        return order
    number = torch.arange(len(order)) // pool
    key = number * (int(lengths.max()) + 1) + lengths[order]
    order = order[key.argsort(stable=True)]
    batches = order[: whole * size].view(whole, size)
    batches = batches[torch.randperm(whole, generator=source)]
    return torch.cat([batches.flatten(), order[whole * size :]])


def packed(
    lengths: Tensor, tokens: int, source: torch.Generator | None
) -> tuple[Tensor, list[int]]:
    """Return an order of rows, (N,), and where to cut it into batches of at most ``tokens``.

    Rows are sorted by length, with ties in random order, so that every epoch has the same number of
    batches.

    Parameters
    ----------
    lengths
        Of each row, (N,).
    tokens
        Most tokens of a batch, padding included; a longer row is a batch by itself.
    source
        Random numbers; None: the batches stay in the order of their lengths.

    Examples
    --------
    >>> packed(torch.tensor([3, 9, 3, 2]), 9, None)
    (tensor([3, 0, 2, 1]), [0, 3, 4])
    """
    order = torch.arange(len(lengths))
    if source is not None:
        order = torch.randperm(len(lengths), generator=source)
    order = order[lengths[order].argsort(stable=True)]
    batches = [order[a:b] for a, b in pairwise(_cuts(lengths[order].numpy(), tokens))]
    if source is not None:
        chosen = torch.randperm(len(batches), generator=source).tolist()
        batches = [batches[i] for i in chosen]
    cuts = np.cumsum([0, *(len(batch) for batch in batches)]).tolist()
    return torch.cat(batches), cuts


def _cuts(ascending: np.ndarray, tokens: int) -> list[int]:
    """Return where batches of at most ``tokens`` begin and end, as long as they may be."""
    cuts = [0]
    while (start := cuts[-1]) < len(ascending):
        near = ascending[start : start + max(1, tokens // int(ascending[start]))]
        size = np.searchsorted(near * np.arange(1, len(near) + 1), tokens, side="right")
        cuts.append(start + max(1, int(size)))
    return cuts


def widths_of(
    lengths: Tensor, order: Tensor, cuts: Sequence[int], fixed: Tensor | None = None
) -> list[tuple[int, ...]]:
    """Return how wide each batch must be on each side.

    Parameters
    ----------
    lengths
        Of each row, (N, S).
    order, cuts
        Rows, and where the batches begin and end.
    fixed
        The widths that there may be, (W, S) ascending, as ``fixed_widths`` gives them.
    """
    longest = np.maximum.reduceat(lengths[order].numpy(), cuts[:-1], axis=0)  # (batches, S)
    if fixed is not None:
        sides = range(longest.shape[1])
        found = [np.searchsorted(fixed[:, s].numpy(), longest[:, s]) for s in sides]
        longest = fixed.numpy()[np.max(found, axis=0)]
    return [tuple(widths) for widths in longest.tolist()]


def fixed_widths(lengths: Tensor, multiple: int = 8) -> Tensor:
    """Return at most eight widths, (W, S), that about as many rows each are as long as.

    A recorded CUDA step has one shape: batches padded to few widths need few recordings.

    Parameters
    ----------
    lengths
        Of each row, (N, S).
    multiple
        What widths are rounded up to, up to the longest.

    Examples
    --------
    >>> fixed_widths(torch.arange(1, 33)[:, None]).flatten()
    tensor([ 8, 16, 24, 32])
    """
    ends = torch.arange(1, WIDTHS + 1) * len(lengths) // WIDTHS - 1
    found = lengths.sort(dim=0).values[ends.clamp_min(0)]  # quantiles
    found = torch.minimum(-(-found // multiple) * multiple, found[-1])
    return found.unique(dim=0)  # ascends on every side, as quantiles do together


def padding_share(lengths: Tensor, batches: Sequence[Tensor]) -> Tensor:
    """Return which share of the tokens is padding when each batch is as wide as its longest row.

    >>> padding_share(torch.tensor([1, 3]), [torch.tensor([0, 1])])
    tensor(0.3333)
    """
    wide = sum(len(batch) * lengths[batch].max() for batch in batches)
    return 1 - lengths[torch.cat(list(batches))].sum() / wide
