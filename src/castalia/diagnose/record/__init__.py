"""What was seen of a training, as plain numbers: all that the rules look at."""

from castalia.diagnose.record.head import Activation, Head
from castalia.diagnose.record.record import Evaluation, Layer, Look, OptimizerFacts, Record, Weight
from castalia.diagnose.record.rows import Rows
from castalia.diagnose.record.units import Units

__all__ = [
    "Activation",
    "Evaluation",
    "Head",
    "Layer",
    "Look",
    "OptimizerFacts",
    "Record",
    "Rows",
    "Units",
    "Weight",
]
