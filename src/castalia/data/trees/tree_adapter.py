"""The adapter of trees: symbols become numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from castalia.data.adapter_base import Adapter
from castalia.data.trees.labelled_tree import Tree
from castalia.data.trees.tree_rows import TreeRows
from castalia.errors import InvalidData
from castalia.protocols import Rows

__all__ = ["TreeAdapter"]


class TreeAdapter(Adapter):
    """Trees, or texts in brackets.

    Parameters
    ----------
    rare
        Symbols that occur less often than this share one number with those never seen.
    ordered
        Whether the order of children counts; then no node may have more of them than in ``fit``.

    Examples
    --------
    >>> adapter = TreeAdapter()
    >>> X = adapter.check(["(1 (0 not) (0 bad))", "(0 bad)"], "RecursiveNetwork")
    >>> adapter.fit(X).inputs, adapter.words
    (4, ['bad', 'not'])
    """

    def __init__(self, rare: int = 1, ordered: bool = True) -> None:
        self.rare, self.ordered = rare, ordered
        self.inputs = self.arity = 0
        self.usual = 1.0  # nodes of a tree, on average
        self.words: list[str] = []

    @property
    def extra(self) -> Mapping[str, Any]:
        """Most children of a node."""
        return {"arity": self.arity}

    def check(self, X: Any, owner: str) -> list[Tree]:
        """Return X as trees, after ``fit`` with no more children at a node."""
        if isinstance(X, str | Tree) or not hasattr(X, "__len__"):
            raise InvalidData(f"{owner}: trees must be a list of several; got {X!r}.")
        if not len(X):
            raise InvalidData(f"{owner}: there must be one tree at least; got none.")
        trees = [_tree(each, owner) for each in X]
        if self.arity and self.ordered:
            wide = next((i for i, tree in enumerate(trees) if _arity(tree) > self.arity), None)
            if wide is not None:
                raise InvalidData(
                    f"{owner}: a node must have at most {self.arity} children, as in fit; tree "
                    f"{wide} has one with {_arity(trees[wide])}. Set ordered=False to add children "
                    "up."
                )
        return trees

    def fit(self, X: list[Tree], sample_weight: np.ndarray | None = None) -> TreeAdapter:
        """Learn the symbols and the number of children."""
        counts = Counter(
            str(node.symbol) for tree in X for node in tree.nodes() if node.symbol is not None
        )
        self.words = sorted(word for word, n in counts.items() if n >= self.rare)
        self.inputs = len(self.words) + 2
        self.arity = max(1, *(_arity(tree) for tree in X))
        self.usual = float(np.mean([len(tree) for tree in X]))
        return self

    def rows(self, X: list[Tree], dtype: Any) -> Rows:
        """Return trees as rows of a training."""
        codes = {word: i + 2 for i, word in enumerate(self.words)}
        return TreeRows(X, codes, max(self.arity, *(_arity(tree) for tree in X)))


def _tree(each: Any, owner: str) -> Tree:
    if isinstance(each, str):
        return Tree.parse(each)
    if not isinstance(each, Tree):
        raise InvalidData(
            f"{owner}: a tree must be a castalia.data.Tree, or text in brackets such as "
            f"'(1 (0 not) (0 bad))'; got {each!r}."
        )
    return each


def _arity(tree: Tree) -> int:
    return max(len(node.children) for node in tree.nodes())
