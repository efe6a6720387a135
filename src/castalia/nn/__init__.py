"""Blocks used by two or more networks, and what ``torch.nn`` lacks."""

from castalia.nn.activations import ACTIVATIONS, activation
from castalia.nn.random_features import FourierFeatures, draw_frequencies, fourier_features
from castalia.nn.table import TableEmbedding

__all__ = [
    "ACTIVATIONS",
    "FourierFeatures",
    "TableEmbedding",
    "activation",
    "draw_frequencies",
    "fourier_features",
]
