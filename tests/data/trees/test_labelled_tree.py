"""Trees: brackets read and written, and what cannot be one refused."""

import pytest
import torch

from castalia.data import Tree, TreeAdapter
from castalia.data.trees import TreeRows
from castalia.errors import InvalidData

TEXT = "(4 (2 a) (4 (3 lovely) (2 film)))"


def test_brackets_are_read_and_written():
    tree = Tree.parse(TEXT)
    assert str(tree) == TEXT
    assert [node.symbol for node in tree.nodes()] == [None, "a", None, "lovely", "film"]
    assert str(Tree.parse("(- and (1 true) (- false))")) == "(- and (1 true) (- false))"
    assert Tree.parse("(2 8 1/2)").symbol == "8 1/2"


def test_a_chain_deeper_than_python_recurses_is_read_and_packed():
    deep = Tree.parse("(1 " * 3000 + "(1 a)" + ")" * 3000)
    assert len(deep) == 3001
    assert len(str(deep)) == len("(1 " * 3000 + "(1 a)" + ")" * 3000)
    packed = TreeRows([deep], {"a": 2}, 1).take(torch.tensor([0]))
    assert packed.levels == ((0, 1), *[(1, 0)] * 3000)


@pytest.mark.parametrize("text", ["", "a", "(1 a", "(1 a))", "(1 a) (2 b)", "(", "((1 a))"])
def test_what_is_no_tree_is_refused(text):
    with pytest.raises(InvalidData, match="a tree must be one pair of brackets"):
        Tree.parse(text)


@pytest.mark.parametrize(
    "X, said",
    [
        ("(1 a)", "trees must be a list"),
        ([], "one tree at least"),
        ([3.5], "a tree must be .*got 3.5"),
        (["(1 (1 a) (1 b) (1 c))"], "at most 2 children, as in fit; tree 0 has one with 3"),
    ],
)
def test_what_cannot_be_trees_is_refused_in_a_sentence(X, said):
    adapter = TreeAdapter()
    adapter.fit(adapter.check([TEXT], "owner"))
    with pytest.raises(InvalidData, match=said):
        adapter.check(X, "owner")


def test_one_node_may_stand_in_several_places():
    leaf = Tree("a")
    rows = TreeRows([Tree("and", [leaf, Tree("not", [leaf])])], {"a": 2, "and": 3, "not": 4}, 2)
    packed = rows.take(torch.tensor([0]))
    assert packed.symbols.tolist() == [2, 2, 4, 3]
    assert packed.children.tolist() == [[1, 0], [2, 1]]
    assert packed.place.tolist() == [[3, 1, 2, 0]]


def test_rare_symbols_share_a_number():
    adapter = TreeAdapter(rare=2)
    adapter.fit(adapter.check(["(1 (1 a) (1 a))", "(1 (1 b) (1 a))"], "owner"))
    packed = adapter.rows(adapter.check(["(1 (1 a) (1 b))"], "owner"), None).take(torch.tensor([0]))
    assert (adapter.inputs, packed.symbols.tolist()) == (3, [2, 1, 0])
