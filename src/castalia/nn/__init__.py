"""Blocks used by two or more networks, and what ``torch.nn`` lacks."""

from torch.nn import Dropout, Embedding

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
from castalia.nn.adaptation import (
    BottleneckAdapters,
    CopiedWeights,
    LoRA,
    LoRALinear,
    Prompts,
    copy_weights,
    merge_lora,
    unmerge_lora,
)
from castalia.nn.architecture import Layer, Summary, summary
from castalia.nn.attention import (
    AdditiveAttention,
    AttentionPooling,
    Cache,
    DotProductAttention,
    FeedForward,
    LearnedPositions,
    Mask,
    MultiHeadAttention,
    MultiplicativeAttention,
    RelativeBias,
    Rotary,
    SinusoidalPositions,
    TransformerDecoderBlock,
    TransformerEncoderBlock,
    block,
    causal,
    local,
    padding,
    prefix,
    strided,
)
from castalia.nn.bounding_boxes import (
    anchor_sizes,
    box_iou,
    from_corners,
    iou_matrix,
    non_maximum_suppression,
    suppress,
    to_corners,
)
from castalia.nn.convolutions.channel_axis import channels_first, channels_last
from castalia.nn.convolutions.connectivity import Connectivity, compare_connectivity
from castalia.nn.convolutions.convolution import convolve, pad
from castalia.nn.convolutions.convolution_matrix import convolution_matrix
from castalia.nn.convolutions.convolution_sizes import output_size, receptive_field, transposed_size
from castalia.nn.convolutions.dense_to_conv import dense_to_conv
from castalia.nn.convolutions.global_pool import GlobalPool
from castalia.nn.convolutions.locally_connected import LocallyConnected1d, LocallyConnected2d
from castalia.nn.convolutions.separable_convolution import SeparableConv1d, SeparableConv2d
from castalia.nn.convolutions.unpool import Positions, Unpool2d
from castalia.nn.graph import (
    Adjacency,
    ChebyshevConv,
    GATConv,
    GatedGraphConv,
    GCNConv,
    GINConv,
    GraphRecurrence,
    NN4GConv,
    SAGEConv,
    SpectralConv,
    graph_fourier,
    laplacian,
    walk_counts,
)
from castalia.nn.inspection.influence import influence
from castalia.nn.inspection.layer_signals import layer_gradients, recording, saturation
from castalia.nn.layers.batch_norm import recompute_batch_norm, running_statistics
from castalia.nn.layers.category_embeddings import TableEmbedding
from castalia.nn.layers.fourier_features import FourierFeatures, draw_frequencies, fourier_features
from castalia.nn.layers.maxout import Maxout
from castalia.nn.layers.multistep_residual import MultistepResidual
from castalia.nn.layers.ode_block import ODEBlock
from castalia.nn.layers.residual import Residual, residual_block
from castalia.nn.layers.scalar_mix import ScalarMix
from castalia.nn.layers.sparse_linear import SparseLinear
from castalia.nn.layers.table_features import TableFeatures, smooth_clip
from castalia.nn.layers.threshold_unit import ThresholdUnit
from castalia.nn.network_modes import evaluating, uncompiled
from castalia.nn.recurrent import (
    ContextCell,
    ElmanCell,
    GRUCell,
    JordanCell,
    LeakyIntegratorCell,
    LSTMCell,
    OutputRecurrentCell,
    Recurrent,
)
from castalia.nn.regularisation.dropout_layers import MonteCarloDropout, OriginalDropout, dropout_on
from castalia.nn.regularisation.dropout_masks import all_masks, geometric_ensemble
from castalia.nn.regularisation.gaussian_noise import GaussianNoise
from castalia.nn.regularisation.weight_scaling import scale_weights, with_dropout
from castalia.nn.weight_initialisation import GAINS, SCHEMES, init
from castalia.nn.words import FullSoftmax, HierarchicalSoftmax, NegativeSampling, huffman_paths

__all__ = [
    "Adjacency",
    "ChebyshevConv",
    "GATConv",
    "GCNConv",
    "GINConv",
    "GatedGraphConv",
    "GraphRecurrence",
    "NN4GConv",
    "SAGEConv",
    "SpectralConv",
    "graph_fourier",
    "laplacian",
    "walk_counts",
    "unmerge_lora",
    "merge_lora",
    "Prompts",
    "LoRALinear",
    "LoRA",
    "BottleneckAdapters",
    "ACTIVATIONS",
    "ELU",
    "GAINS",
    "SCHEMES",
    "AdditiveAttention",
    "AttentionPooling",
    "Cache",
    "Clipped",
    "Connectivity",
    "ContextCell",
    "CopiedWeights",
    "Cosine",
    "DotProductAttention",
    "Dropout",
    "ElmanCell",
    "Embedding",
    "FeedForward",
    "FourierFeatures",
    "FullSoftmax",
    "GRUCell",
    "GaussianNoise",
    "GlobalPool",
    "HierarchicalSoftmax",
    "Identity",
    "JordanCell",
    "LSTMCell",
    "Layer",
    "LeakyIntegratorCell",
    "LeakyReLU",
    "LearnedPositions",
    "LocallyConnected1d",
    "LocallyConnected2d",
    "Mask",
    "Maxout",
    "MonteCarloDropout",
    "MultiHeadAttention",
    "MultiplicativeAttention",
    "MultistepResidual",
    "NegativeSampling",
    "ODEBlock",
    "OriginalDropout",
    "OutputRecurrentCell",
    "PReLU",
    "Positions",
    "ReLU",
    "Recurrent",
    "RelativeBias",
    "Residual",
    "Rotary",
    "ScalarMix",
    "SeparableConv1d",
    "SeparableConv2d",
    "Sigmoid",
    "Sign",
    "SinusoidalPositions",
    "Softmax",
    "Softplus",
    "SparseLinear",
    "Step",
    "Summary",
    "Swish",
    "TableEmbedding",
    "TableFeatures",
    "Tanh",
    "ThresholdUnit",
    "TransformerDecoderBlock",
    "TransformerEncoderBlock",
    "Unpool2d",
    "activation",
    "all_masks",
    "anchor_sizes",
    "block",
    "box_iou",
    "causal",
    "channels_first",
    "channels_last",
    "compare_connectivity",
    "convolution_matrix",
    "convolve",
    "copy_weights",
    "dense_to_conv",
    "draw_frequencies",
    "dropout_on",
    "evaluating",
    "fourier_features",
    "from_corners",
    "geometric_ensemble",
    "huffman_paths",
    "influence",
    "init",
    "iou_matrix",
    "layer_gradients",
    "local",
    "non_maximum_suppression",
    "output_size",
    "pad",
    "padding",
    "prefix",
    "receptive_field",
    "recompute_batch_norm",
    "recording",
    "residual_block",
    "running_statistics",
    "saturation",
    "scale_weights",
    "smooth_clip",
    "strided",
    "summary",
    "suppress",
    "to_corners",
    "transposed_size",
    "uncompiled",
    "with_dropout",
]
