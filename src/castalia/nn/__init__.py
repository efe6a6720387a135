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
from castalia.nn.boxes import (
    anchor_sizes,
    box_iou,
    from_corners,
    iou_matrix,
    non_maximum_suppression,
    suppress,
    to_corners,
)
from castalia.nn.copying import CopiedWeights, copy_weights
from castalia.nn.dropout import MonteCarloDropout, OriginalDropout, dropout_on
from castalia.nn.initialisation import GAINS, SCHEMES, init
from castalia.nn.masks import all_masks, geometric_ensemble
from castalia.nn.maxout import Maxout
from castalia.nn.modes import evaluating, uncompiled
from castalia.nn.noise import GaussianNoise
from castalia.nn.random_features import FourierFeatures, draw_frequencies, fourier_features
from castalia.nn.residual import Residual
from castalia.nn.signals import layer_gradients, recording, saturation
from castalia.nn.sparse import SparseLinear
from castalia.nn.table import TableEmbedding
from castalia.nn.threshold import ThresholdUnit
from castalia.nn.weight_scaling import scale_weights, with_dropout

__all__ = [
    "ACTIVATIONS",
    "ELU",
    "GAINS",
    "SCHEMES",
    "Clipped",
    "CopiedWeights",
    "Cosine",
    "FourierFeatures",
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
    "ThresholdUnit",
    "activation",
    "all_masks",
    "anchor_sizes",
    "box_iou",
    "copy_weights",
    "draw_frequencies",
    "dropout_on",
    "evaluating",
    "fourier_features",
    "from_corners",
    "geometric_ensemble",
    "init",
    "iou_matrix",
    "layer_gradients",
    "non_maximum_suppression",
    "recompute_batch_norm",
    "recording",
    "running_statistics",
    "saturation",
    "scale_weights",
    "suppress",
    "to_corners",
    "uncompiled",
    "with_dropout",
]
