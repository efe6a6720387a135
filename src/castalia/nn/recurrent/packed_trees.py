"""Several trees as one batch, their nodes in the order of their depths.

Shapes: B trees, M nodes of all together, A children of a node at most, T nodes of the largest tree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

__all__ = ["PackedTrees"]


@dataclass(frozen=True, eq=False)
class PackedTrees:
    """Trees side by side: nodes of one depth need only those one deeper, and go together.

    Attributes
    ----------
    symbols
        Code of what stands at each node, (M,): leaves before the others, the deepest first; 0 for
        nothing.
    children
        Of each node that is no leaf, (M - leaves, A): 1 + the place of a child among all nodes of
        its depth, leaves after the others; 0 for none.
    levels
        How many nodes of each depth are no leaves, and how many are; the deepest first.
    place
        Where each tree's nodes are, (B, T), in the order they are written; 0 after the end.
    """

    symbols: Tensor
    children: Tensor
    levels: tuple[tuple[int, int], ...]
    place: Tensor

    def __len__(self) -> int:
        return len(self.place)

    def to(self, device: Any) -> PackedTrees:
        """Return the same trees on a device."""
        symbols, children, place = (
            part.to(device, non_blocking=True) for part in (self.symbols, self.children, self.place)
        )
        return PackedTrees(symbols, children, self.levels, place)
