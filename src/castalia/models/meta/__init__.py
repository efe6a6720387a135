"""Learning to learn: from many tasks to one that learns a new task from a few rows."""

from castalia.models.meta.conditional_neural_process import (
    AttentiveNeuralProcess,
    ConditionalNeuralProcess,
)
from castalia.models.meta.latent_neural_process import NeuralProcess
from castalia.models.meta.maml import MAML
from castalia.models.meta.prototype_network import ProtoNet
from castalia.models.meta.reptile import Reptile

__all__ = [
    "MAML",
    "AttentiveNeuralProcess",
    "ConditionalNeuralProcess",
    "NeuralProcess",
    "ProtoNet",
    "Reptile",
]
