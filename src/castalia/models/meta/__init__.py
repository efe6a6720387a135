"""Learning to learn: from many tasks to one that learns a new task from a few rows."""

from castalia.models.meta.conditional_neural_process import (
    AttentiveNeuralProcess,
    ConditionalNeuralProcess,
)
from castalia.models.meta.maml import MAML

__all__ = ["MAML", "AttentiveNeuralProcess", "ConditionalNeuralProcess"]
