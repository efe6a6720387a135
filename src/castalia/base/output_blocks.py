"""Outputs that come block by block, put together."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from castalia.utils.tensor_trees import leaves, map_tree

__all__ = ["join_blocks"]


def join_blocks(blocks: Iterator[Any], rows: int, empty: Any) -> Any:
    """Return blocks of outputs, trees of tensors, as one; beside it only a block is in memory.

    Examples
    --------
    >>> import torch
    >>> join_blocks(iter(torch.arange(5).split(2)), 5, None)
    tensor([0, 1, 2, 3, 4])
    """
    first = next(blocks, empty)
    parts = list(leaves(first))
    if len(parts[0]) == rows:
        return first
    whole = [part.new_empty(rows, *part.shape[1:]) for part in parts]
    stop = 0
    for block in chain([first], blocks):
        parts = list(leaves(block))
        start, stop = stop, stop + len(parts[0])
        for found, part in zip(whole, parts, strict=True):
            found[start:stop] = part
    found_parts = iter(whole)
    return map_tree(lambda _: next(found_parts), first)
