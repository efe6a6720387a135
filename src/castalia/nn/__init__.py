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
from castalia.nn.dropout import MonteCarloDropout, OriginalDropout, dropout_on
from castalia.nn.masks import all_masks, geometric_ensemble
from castalia.nn.maxout import Maxout
from castalia.nn.modes import evaluating
from castalia.nn.noise import GaussianNoise
from castalia.nn.residual import Residual
from castalia.nn.signals import layer_gradients, recording, saturation
from castalia.nn.sparse import SparseLinear
from castalia.nn.table import TableEmbedding
from castalia.nn.weight_scaling import scale_weights, with_dropout

__all__ = [
    "ACTIVATIONS",
    "ELU",
    "Clipped",
    "Cosine",
    "GaussianNoise",
    "Identity",
    "LeakyReLU",
    "Maxout",
    "MonteCarloDropout",
    "OriginalDropout",
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
    "all_masks",
    "dropout_on",
    "evaluating",
    "geometric_ensemble",
    "layer_gradients",
    "recording",
    "saturation",
    "scale_weights",
    "with_dropout",
]
