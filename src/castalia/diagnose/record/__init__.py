"""What was seen of a training, as plain numbers: all that the rules read."""

from castalia.diagnose.record.loss_head import Activation, Head
from castalia.diagnose.record.row_sample import Rows
from castalia.diagnose.record.training_curves import curves_of
from castalia.diagnose.record.training_record import (
    UNROLLED,
    Evaluation,
    Layer,
    Look,
    OptimizerFacts,
    Record,
    Weight,
)
from castalia.diagnose.record.unit_activity import Units

__all__ = [
    "UNROLLED",
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
    "curves_of",
]
