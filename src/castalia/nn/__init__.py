"""Blocks used by two or more networks, and what ``torch.nn`` lacks."""

from castalia.nn.activations import (
    ACTIVATIONS,
    ELU,
    Clipped,
    Cosine,
    Identity,
    LeakyReLU,
    PReLU,
    ReLU,
    Sigmoid,
    Sign,
    Softmax,
    Softplus,
    Step,
    Swish,
    Tanh,
    activation,
)
from castalia.nn.maxout import Maxout
from castalia.nn.random_features import FourierFeatures, draw_frequencies, fourier_features
from castalia.nn.residual import Residual
from castalia.nn.signals import layer_gradients, recording, saturation
from castalia.nn.sparse import SparseLinear
from castalia.nn.table import TableEmbedding

__all__ = [
    "ACTIVATIONS",
    "ELU",
    "Clipped",
    "Cosine",
    "FourierFeatures",
    "Identity",
    "LeakyReLU",
    "Maxout",
    "PReLU",
    "ReLU",
    "Residual",
    "Sigmoid",
    "Sign",
    "Softmax",
    "Softplus",
    "SparseLinear",
    "Step",
    "Swish",
    "TableEmbedding",
    "Tanh",
    "activation",
    "draw_frequencies",
    "fourier_features",
    "layer_gradients",
    "recording",
    "saturation",
]
