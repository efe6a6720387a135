"""Recurrent cells, and what runs them along time."""

from castalia.nn.recurrent.gated_cells import GRUCell, LSTMCell
from castalia.nn.recurrent.recurrent_cell import Cell
from castalia.nn.recurrent.recurrent_network import CELLS, Recurrent
from castalia.nn.recurrent.simple_cells import (
    ContextCell,
    ElmanCell,
    JordanCell,
    LeakyIntegratorCell,
    OutputRecurrentCell,
)

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
    "Recurrent",
]
