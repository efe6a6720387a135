"""Networks on sequences: recurrent, convolutional over time, on windows."""

from castalia.nets.sequence.forecast_bodies import FlatWindow, LastState, PatchEncoder
from castalia.nets.sequence.forecast_network import LEVELS, Forecast, ForecastNetwork
from castalia.nets.sequence.recurrent_predictor import (
    POOLS,
    SequencePredictor,
    StepPredictor,
    pooled,
)
from castalia.nets.sequence.recurrent_stack import CELL_NAMES, RecurrentStack
from castalia.nets.sequence.step_vectors import StepEmbedding
from castalia.nets.sequence.temporal_convolutions import TCN
from castalia.nets.sequence.tree_network import COMPOSITIONS, TreeNetwork

__all__ = [
    "CELL_NAMES",
    "COMPOSITIONS",
    "LEVELS",
    "POOLS",
    "TCN",
    "FlatWindow",
    "Forecast",
    "ForecastNetwork",
    "LastState",
    "PatchEncoder",
    "RecurrentStack",
    "SequencePredictor",
    "StepEmbedding",
    "StepPredictor",
    "TreeNetwork",
    "pooled",
]
