"""The recursive network, all depths at once: held to the equations, node by node."""

import pytest
import torch
from torch.testing import assert_close

from castalia.data import Tree
from castalia.data.trees import TreeRows
from castalia.nets.sequence import TreeNetwork

TREES = [
    "(1 (1 a) (1 (1 b) (1 a)))",
    "(1 b)",
    "(1 and (1 (1 a) (1 b) (1 a)) (1 (1 (1 b)) (1 a)))",
]
CODES = {"a": 2, "b": 3, "and": 4}


def by_hand(net, tree):
    """States of a node and of all below it, by the equations of the module's docstring."""
    cell, size = net.cell, net.cell.hidden
    x = net.embed.weight[0 if tree.symbol is None else CODES[tree.symbol]]
    if tree.symbol is None:
        x = torch.zeros_like(x)
    below = [by_hand(net, child) for child in tree.children]
    hs = [states[0][0] for states in below]
    total = cell.lift.weight @ x + cell.lift.bias
    if cell.arity:
        hs_wide = hs + [torch.zeros(size)] * (cell.arity - len(hs))
        merged = cell.merge.weight @ torch.cat(hs_wide)
    else:
        merged = cell.merge.weight @ sum(hs, torch.zeros(size))
    if cell.parts == 1:
        mine = (torch.tanh(total + merged),)
    else:
        i, o, u = (total[: 3 * size] + merged[: 3 * size]).chunk(3)
        c = i.sigmoid() * u.tanh()
        for k, states in enumerate(below):
            seen = (
                merged[(3 + k) * size : (4 + k) * size]
                if cell.arity
                else cell.forget.weight @ hs[k]
            )
            c = c + (total[3 * size :] + seen).sigmoid() * states[0][1]
        mine = (o.sigmoid() * c.tanh(), c)
    return [mine, *(node for states in below for node in states)]


@pytest.mark.parametrize("composition", ["tanh", "lstm"])
@pytest.mark.parametrize("arity", [3, None])
def test_all_depths_at_once_equal_the_equations_node_by_node(composition, arity):
    torch.manual_seed(0)
    net = TreeNetwork(5, 2, dim=3, hidden=4, composition=composition, arity=arity)
    trees = [Tree.parse(text) for text in TREES]
    packed = TreeRows(trees, CODES, 3).take(torch.tensor([2, 0, 1]))
    found = net.at_nodes(packed)
    for row, tree in zip(found, [trees[2], trees[0], trees[1]], strict=True):
        wanted = torch.stack([net.head(states[0]) for states in by_hand(net, tree)])
        assert_close(row[: len(tree)], wanted)
    assert_close(net(packed), found[:, 0])


def test_children_that_are_added_up_may_change_places_and_ordered_ones_may_not():
    torch.manual_seed(0)
    both = TreeRows([Tree.parse(t) for t in ("(1 (1 a) (1 b))", "(1 (1 b) (1 a))")], CODES, 2)
    for arity in (None, 2):
        net = TreeNetwork(5, 2, dim=3, hidden=4, arity=arity)
        one, other = net(both.take(torch.tensor([0, 1])))
        assert torch.allclose(one, other) == (arity is None)
