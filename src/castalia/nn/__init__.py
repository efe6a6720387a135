"""Blocks used by two or more networks, and what ``torch.nn`` lacks."""

from castalia.nn.activations import ACTIVATIONS, activation
from castalia.nn.batch_norm import recompute_batch_norm, running_statistics
from castalia.nn.copying import CopiedWeights, copy_weights
from castalia.nn.initialisation import GAINS, SCHEMES, init
from castalia.nn.table import TableEmbedding

__all__ = [
    "ACTIVATIONS",
    "GAINS",
    "SCHEMES",
    "CopiedWeights",
    "TableEmbedding",
    "activation",
    "copy_weights",
    "init",
    "recompute_batch_norm",
    "running_statistics",
]
