"""Recursive network: one cell, applied from the leaves of a tree to its root.

All nodes of one depth are computed at once, over all trees of a batch, the deepest first.
Shapes: B trees, T nodes of the largest, M nodes of all, H hidden, K outputs.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from castalia.nn.recurrent import PackedTrees, TreeCell, TreeLSTMCell

__all__ = ["COMPOSITIONS", "TreeNetwork"]

COMPOSITIONS: dict[str, type[TreeCell]] = {"lstm": TreeLSTMCell, "tanh": TreeCell}


class TreeNetwork(nn.Module):
    """Answers at every node of a tree; that of the tree is the root's.

    Parameters
    ----------
    symbols
        Number of codes of symbols; 0 is none.
    outputs
        Number of outputs.
    dim, hidden
        Widths of the vector of a symbol, and of the state of a node.
    composition
        ``"lstm"`` or ``"tanh"``.
    arity
        Children of a node at most, where their order counts; None: it does not.
    dropout
        Probability of zeroing a number of a symbol's vector, and before the output.
    """

    def __init__(
        self,
        symbols: int,
        outputs: int,
        *,
        dim: int = 64,
        hidden: int = 64,
        composition: str = "lstm",
        arity: int | None = 2,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.embed = nn.Embedding(symbols, dim, padding_idx=0)
        with torch.no_grad():
            self.embed.weight.mul_(dim**-0.5)
        self.cell = COMPOSITIONS[composition](dim, hidden, arity)
        self.dropout, self.head = nn.Dropout(dropout), nn.Linear(hidden, outputs)

    def forward(self, trees: PackedTrees) -> Tensor:
        """Return the outputs of the roots, (B, K)."""
        return self.head(self.dropout(self.encode(trees)[trees.place[:, 0]]))

    def at_nodes(self, trees: PackedTrees) -> Tensor:
        """Return the outputs of all nodes as they are written, (B, T, K); odd after the end."""
        return self.head(self.dropout(self.encode(trees)))[trees.place]

    def encode(self, trees: PackedTrees) -> Tensor:
        """Return the states of all nodes, (M, H)."""
        inner, leaves = (list(counts) for counts in zip(*trees.levels, strict=True))
        lifted = self.cell.lift(self.dropout(self.embed(trees.symbols)))
        at_leaves = self.cell(lifted[: sum(leaves)])
        parts = zip(*(part.split(leaves) for part in at_leaves), strict=True)
        rest, children = lifted[sum(leaves) :].split(inner), trees.children.split(inner)
        known, found = tuple(part[:0] for part in at_leaves), [at_leaves[0]]
        for here, places, tips in zip(rest, children, parts, strict=True):
            below = tuple(nn.functional.pad(part, (0, 0, 1, 0))[places] for part in known)
            made = self.cell(here, below)  # from (m, A, H)
            known = tuple(torch.cat(pair) for pair in zip(made, tips, strict=True))
            found.append(made[0])
        return torch.cat(found)
