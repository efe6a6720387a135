"""Trees of tensors: a tensor, or a tuple, list, dict or dataclass of trees; None is an empty tree.

What a batch holds may be any of these. A record that is neither, such as a packed graph, is a leaf:
it has a ``to`` of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

__all__ = ["leaves", "map_tree", "move", "take"]


def map_tree(function: Callable[[Any], Any], tree: Any) -> Any:
    """Return the tree with a function applied to every leaf.

    Examples
    --------
    >>> map_tree(abs, {"a": -1, "b": (2, None)})
    {'a': 1, 'b': (2, None)}
    """
    if tree is None:
        return None
    if isinstance(tree, dict):
        return type(tree)((key, map_tree(function, value)) for key, value in tree.items())
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):  # a named tuple
        return type(tree)(*(map_tree(function, value) for value in tree))
    if isinstance(tree, tuple | list):
        return type(tree)(map_tree(function, value) for value in tree)
    if is_dataclass(tree) and not isinstance(tree, type) and not hasattr(tree, "to"):
        values = {f.name: map_tree(function, getattr(tree, f.name)) for f in fields(tree)}
        return replace(tree, **values)
    return function(tree)


def leaves(tree: Any) -> Iterator[Any]:
    """Yield the leaves from left to right.

    Examples
    --------
    >>> list(leaves({"a": 1, "b": (2, None)}))
    [1, 2]
    """
    found: list[Any] = []
    map_tree(found.append, tree)
    yield from found


def move(tree: Any, device: Any) -> Any:
    """Return the tree with every tensor on a device; leaves without ``to`` stay as they are."""
    return map_tree(lambda leaf: leaf.to(device) if hasattr(leaf, "to") else leaf, tree)


def take(tree: Any, index: Any) -> Any:
    """Return the rows of every tensor at these positions."""
    return map_tree(lambda leaf: leaf.index_select(0, index), tree)
