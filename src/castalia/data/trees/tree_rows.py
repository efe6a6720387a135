"""Trees as rows of a training: the nodes of a batch are sorted by depth.

Shapes: N trees, S nodes of all together, A children at most, B batch, M nodes of a batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from castalia.data.graphs.graph_rows import ranges
from castalia.data.trees.labelled_tree import Tree
from castalia.nn.recurrent import PackedTrees
from castalia.protocols import Rows

__all__ = ["TreeRows"]


class TreeRows(Rows):
    """Trees of any shape, their nodes one after the other.

    Parameters
    ----------
    trees
        The trees.
    codes
        Numbers of symbols, from 2; others are 1, and None is 0.
    arity
        Children that a node has at most.

    Examples
    --------
    >>> rows = TreeRows([Tree.parse("(1 (1 a) (1 (1 b) (1 a)))")], {"a": 2, "b": 3}, 2)
    >>> packed = rows.take(torch.tensor([0]))
    >>> packed.symbols.tolist(), packed.children.tolist(), packed.levels
    ([3, 2, 2, 0, 0], [[1, 2], [2, 1]], ((0, 2), (1, 1), (1, 0)))
    """

    def __init__(self, trees: list[Tree], codes: dict[str, int], arity: int) -> None:
        found = [_laid(tree, codes, arity) for tree in trees]
        self.symbols, self.depths, self.children = (
            torch.from_numpy(np.concatenate(parts)) for parts in zip(*found, strict=True)
        )
        self.lengths = torch.tensor([len(symbols) for symbols, _, _ in found])
        self.first = self.lengths.cumsum(0) - self.lengths

    def __len__(self) -> int:
        return len(self.first)

    def take(self, index: Tensor, width: int | None = None) -> PackedTrees:
        """Return some trees side by side, their nodes in the order of their depths."""
        index = index.cpu()
        known: Any = self.lengths
        lengths = known[index]
        nodes = ranges(self.first[index], lengths)  # (M,)
        begin = lengths.cumsum(0) - lengths
        below = self.children[nodes]  # (M, A): 1 + number inside the tree, 0 for none
        leaf = (below == 0).all(dim=1).long()
        depth = self.depths[nodes]
        level = depth.max() - depth  # the deepest are 0
        levels = torch.bincount(2 * level + leaf, minlength=2 * int(level.max()) + 2).view(-1, 2)
        among = _ranks(2 * level + leaf) - (levels.sum(dim=1).cumsum(0) - levels.sum(dim=1))[level]
        among = torch.cat([among.new_zeros(1), among + 1])
        below = among[torch.where(below > 0, below + begin.repeat_interleave(lengths)[:, None], 0)]
        place = _ranks(level - leaf * (len(levels) + 1))  # leaves before the others
        order = torch.empty_like(place)
        order[place] = torch.arange(len(place))
        steps = torch.arange(int(lengths.max()) if width is None else width)
        written = place[torch.where(steps < lengths[:, None], begin[:, None] + steps, 0)]
        counts = tuple((inner, leaves) for inner, leaves in levels.tolist())
        children = below[order][int(leaf.sum()) :]
        return PackedTrees(self.symbols[nodes][order], children, counts, written)


def _ranks(keys: Tensor) -> Tensor:
    """Return the place of each key in their order; equal ones keep theirs."""
    order = keys.argsort(stable=True)
    places = torch.empty_like(order)
    places[order] = torch.arange(len(order))
    return places


def _laid(
    tree: Tree, codes: dict[str, int], arity: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return code, depth and children of each node, in the order they are written."""
    nodes = list(tree.nodes())
    symbols = [0 if n.symbol is None else codes.get(str(n.symbol), 1) for n in nodes]
    sizes, children = [1] * len(nodes), [[0] * arity for _ in nodes]
    for i in range(len(nodes) - 1, -1, -1):
        for k in range(len(nodes[i].children)):
            child = i + sizes[i]  # the first is written after its parent, then one after the other
            children[i][k] = child + 1
            sizes[i] += sizes[child]
    depths = [0] * len(nodes)
    for i, below in enumerate(children):
        for child in below:
            if child:
                depths[child - 1] = depths[i] + 1
    found = [np.array(part, dtype=np.int64) for part in (symbols, depths, children)]
    return found[0], found[1], found[2].reshape(len(nodes), arity)
