from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch.testing import assert_close

from castalia.protocols import Batch
from castalia.utils.tensor_trees import leaves, move, take


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclass(frozen=True)
class Record:
    nodes: Any
    edges: Any = None


class Packed:
    """A leaf of its own: it knows how to move."""

    device = "cpu"

    def to(self, device):
        found = Packed()
        found.device = device
        return found


def test_take_picks_the_same_rows_of_every_tensor_and_keeps_the_structure():
    x = torch.arange(6).reshape(3, 2)
    tree = OrderedDict(a=x, b=[Pair(x + 1, None), Record(x + 2)])
    found = take(tree, torch.tensor([2, 0]))
    assert isinstance(found, OrderedDict)
    assert isinstance(found["b"][0], Pair)
    assert found["b"][0].right is None
    for leaf, shift in zip(leaves(found), range(3), strict=True):
        assert_close(leaf, torch.tensor([[4, 5], [0, 1]]) + shift)


def test_move_reaches_tensors_and_records_with_a_to_and_leaves_the_rest():
    moved = move({"t": torch.zeros(2), "g": Packed(), "n": 3, "none": None}, "meta")
    assert moved["t"].device.type == "meta"
    assert moved["g"].device == "meta"
    assert (moved["n"], moved["none"]) == (3, None)


def test_a_batch_moves_with_all_its_parts():
    batch = Batch({"x": torch.zeros(2)}, (torch.zeros(2),), torch.ones(2), torch.ones(2)).to("meta")
    assert [leaf.device.type for leaf in leaves(tuple(batch))] == ["meta"] * 4
