"""A tree: nodes with a symbol, children in order, and a label where there is one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from castalia.errors import InvalidData

__all__ = ["Tree"]

_MARKS = re.compile(r"\(|\)|[^()\s]+")


class Tree:
    """A node and all below it.

    Parameters
    ----------
    symbol
        What stands at the node, such as a word or an operator; None: nothing.
    children
        The trees below, in order.
    label
        What is known about the node; None: nothing.

    Examples
    --------
    >>> tree = Tree.parse("(4 (2 a) (4 (3 lovely) (2 film)))")
    >>> len(tree), tree.words, tree.labels.tolist()
    (5, ['a', 'lovely', 'film'], [4, 2, 4, 3, 2])
    >>> print(Tree("and", [Tree("true"), Tree("not", [Tree("false")])]))
    (- and (- true) (- not (- false)))
    """

    __slots__ = ("children", "label", "symbol")

    def __init__(
        self, symbol: Any = None, children: Sequence[Tree] = (), *, label: Any = None
    ) -> None:
        self.symbol, self.children, self.label = symbol, tuple(children), label

    @classmethod
    def parse(cls, text: str) -> Tree:
        """Read a tree from brackets, as treebanks write it: the first word of each is its label.

        A label ``-`` is none; digits are a number. Further words are the symbol of the node.
        """
        made: list[tuple[list[str], list[Tree]]] = [([], [])]
        for mark in _MARKS.findall(text):
            if mark == "(":
                made.append(([], []))
            elif mark != ")":
                made[-1][0].append(mark)
            else:
                words, children = made.pop()
                if not made or not words:
                    break
                made[-1][1].append(_node(words, children))
        else:
            if len(made) == 1 and len(made[0][1]) == 1 and not made[0][0]:
                return made[0][1][0]
        raise InvalidData(
            "Tree.parse: a tree must be one pair of brackets with a label and a symbol or further "
            f"brackets in it, such as '(1 (0 not) (0 bad))'; got {text[:60]!r}."
        )

    def nodes(self) -> Iterator[Tree]:
        """Yield the nodes as they are written: each before those below it."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.children))

    def __len__(self) -> int:
        return sum(1 for _ in self.nodes())

    @property
    def labels(self) -> np.ndarray:
        """Labels of all nodes in the order of ``nodes``; objects where some are None."""
        found = [node.label for node in self.nodes()]
        return np.array(found, dtype=object if None in found else None)

    @property
    def words(self) -> list[Any]:
        """Symbols of the leaves."""
        return [node.symbol for node in self.nodes() if not node.children]

    def __str__(self) -> str:
        """Write the tree in brackets."""
        found: list[str] = []
        waiting: list[Tree | str] = [self]
        while waiting:
            node = waiting.pop()
            if isinstance(node, str):
                found[-1] += node
                continue
            symbol = "" if node.symbol is None else f" {node.symbol}"
            found.append(f"({'-' if node.label is None else node.label}{symbol}")
            waiting.extend([")", *reversed(node.children)])
        return " ".join(found)

    def __repr__(self) -> str:
        return f"Tree({str(self)!r})"


def _node(words: list[str], children: list[Tree]) -> Tree:
    label: Any = int(words[0]) if words[0].isdecimal() else words[0]
    symbol = " ".join(words[1:]) or None
    return Tree(symbol, children, label=None if label == "-" else label)
