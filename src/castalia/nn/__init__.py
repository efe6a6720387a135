"""Blocks used by two or more networks, and what ``torch.nn`` lacks."""

from castalia.nn.activations import ACTIVATIONS, activation
from castalia.nn.table import TableEmbedding
from castalia.nn.threshold import ThresholdUnit

__all__ = ["ACTIVATIONS", "TableEmbedding", "ThresholdUnit", "activation"]
