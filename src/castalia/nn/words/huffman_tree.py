"""Huffman's tree: frequent words get short ways from the root."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from castalia.errors import InvalidData

__all__ = ["huffman_paths"]


def huffman_paths(counts: Sequence[float] | np.ndarray) -> tuple[Tensor, Tensor]:
    """Return, for every word, the inner nodes on its way and the turn taken at each.

    Parameters
    ----------
    counts
        How often each of V words occurs.

    Returns
    -------
    nodes : Tensor of int64, (V, L)
        Numbers of inner nodes, of which there are V - 1; L is the longest way.
    turns : Tensor of float32, (V, L)
        +1 or -1; 0 behind the end of a shorter way.

    References
    ----------
    1952, Huffman, A method for the construction of minimum-redundancy codes.

    Examples
    --------
    >>> nodes, turns = huffman_paths([5, 2, 1])
    >>> turns.abs().sum(dim=1)  # lengths of the ways
    tensor([1., 2., 2.])
    """
    found = np.asarray(counts, dtype=float)
    if found.ndim != 1 or len(found) < 2 or not (np.isfinite(found) & (found >= 0)).all():
        raise InvalidData(
            "huffman_paths: `counts` must be at least two finite numbers of at least 0; got "
            f"{len(found) if found.ndim else 1}, the smallest {found.min(initial=np.inf):g}."
        )
    parent, turn = _tree(found)
    size = len(found)
    at, nodes, turns = np.arange(size), [], []
    while (at != 2 * size - 2).any():  # up from all leaves at once; the last node is the root
        below = at != 2 * size - 2
        nodes.append(np.where(below, parent[at] - size, 0))
        turns.append(np.where(below, turn[at], 0))
        at = np.where(below, parent[at], at)
    return torch.from_numpy(np.stack(nodes, 1)), torch.from_numpy(np.stack(turns, 1)).float()


def _tree(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the parent of every node and the turn that leads to it; leaves come first."""
    size = len(counts)
    parent, turn = np.zeros(2 * size - 1, np.int64), np.ones(2 * size - 1)
    heap = [(count, node) for node, count in enumerate(counts.tolist())]
    heapq.heapify(heap)
    for node in range(size, 2 * size - 1):
        (first, left), (second, right) = heapq.heappop(heap), heapq.heappop(heap)
        parent[[left, right]], turn[right] = node, -1
        heapq.heappush(heap, (first + second, node))
    return parent, turn
