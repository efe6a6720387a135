"""Recurrent cells, and what runs them along time."""

from castalia.nn.recurrent.cell import Cell
from castalia.nn.recurrent.elman import (
    ContextCell,
    ElmanCell,
    JordanCell,
    LeakyIntegratorCell,
    OutputRecurrentCell,
)
from castalia.nn.recurrent.gated import GRUCell, LSTMCell
from castalia.nn.recurrent.recurrent import CELLS, Recurrent

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
