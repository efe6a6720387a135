"""Recurrent cells, and what runs them along time."""

from castalia.nn.recurrent.gated_cells import GRUCell, LSTMCell
from castalia.nn.recurrent.packed_trees import PackedTrees
from castalia.nn.recurrent.recurrent_cell import Cell
from castalia.nn.recurrent.recurrent_network import CELLS, Recurrent
from castalia.nn.recurrent.simple_cells import (
    ContextCell,
    ElmanCell,
    JordanCell,
    LeakyIntegratorCell,
    OutputRecurrentCell,
)
from castalia.nn.recurrent.tree_cells import TreeCell, TreeLSTMCell

__all__ = [
    "CELLS",
    "Cell",
    "ContextCell",
    "ElmanCell",
    "GRUCell",
    "JordanCell",
    "LSTMCell",
    "LeakyIntegratorCell",
    "OutputRecurrentCell",
    "PackedTrees",
    "Recurrent",
    "TreeCell",
    "TreeLSTMCell",
]
