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
from castalia.nn.batch_norm import recompute_batch_norm, running_statistics
from castalia.nn.copying import CopiedWeights, copy_weights
from castalia.nn.initialisation import GAINS, SCHEMES, init
from castalia.nn.maxout import Maxout
from castalia.nn.random_features import FourierFeatures, draw_frequencies, fourier_features
from castalia.nn.residual import Residual
from castalia.nn.signals import layer_gradients, recording, saturation
from castalia.nn.sparse import SparseLinear
from castalia.nn.table import TableEmbedding
from castalia.nn.threshold import ThresholdUnit

__all__ = [
    "ACTIVATIONS",
    "ELU",
    "GAINS",
    "SCHEMES",
    "Clipped",
    "CopiedWeights",
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
    "ThresholdUnit",
    "activation",
    "copy_weights",
    "draw_frequencies",
    "fourier_features",
    "init",
    "layer_gradients",
    "recompute_batch_norm",
    "recording",
    "running_statistics",
    "saturation",
]
