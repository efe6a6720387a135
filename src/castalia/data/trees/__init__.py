"""Trees: nodes with symbols and labels, and what makes batches of them."""

from castalia.data.trees.labelled_tree import Tree
from castalia.data.trees.tree_adapter import TreeAdapter
from castalia.data.trees.tree_rows import TreeRows

__all__ = ["Tree", "TreeAdapter", "TreeRows"]
