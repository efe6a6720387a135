"""Layers and blocks that torch lacks, and batch normalisation by all the data."""

from castalia.nn.layers.batch_norm import recompute_batch_norm, running_statistics
from castalia.nn.layers.category_embeddings import TableEmbedding, embedding_width
from castalia.nn.layers.fourier_features import FourierFeatures, draw_frequencies, fourier_features
from castalia.nn.layers.maxout import Maxout
from castalia.nn.layers.multistep_residual import MultistepResidual
from castalia.nn.layers.ode_block import ODEBlock
from castalia.nn.layers.residual import Residual, residual_block
from castalia.nn.layers.scalar_mix import ScalarMix
from castalia.nn.layers.sparse_linear import SparseLinear
from castalia.nn.layers.threshold_unit import ThresholdUnit

__all__ = [
    "FourierFeatures",
    "Maxout",
    "MultistepResidual",
    "ODEBlock",
    "Residual",
    "ScalarMix",
    "SparseLinear",
    "TableEmbedding",
    "ThresholdUnit",
    "draw_frequencies",
    "embedding_width",
    "fourier_features",
    "recompute_batch_norm",
    "residual_block",
    "running_statistics",
]
