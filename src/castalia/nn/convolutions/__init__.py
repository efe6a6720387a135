"""Convolution and pooling: the operations, the layers torch lacks, and the sizes they give."""

from castalia.nn.convolutions.block_convolution import convolve_blocks
from castalia.nn.convolutions.channel_axis import channels_first, channels_last
from castalia.nn.convolutions.connectivity import Connectivity, compare_connectivity
from castalia.nn.convolutions.convolution import BORDERS, convolve, pad
from castalia.nn.convolutions.convolution_matrix import convolution_matrix
from castalia.nn.convolutions.convolution_sizes import output_size, receptive_field, transposed_size
from castalia.nn.convolutions.dense_to_conv import dense_to_conv
from castalia.nn.convolutions.global_pool import GlobalPool
from castalia.nn.convolutions.locally_connected import LocallyConnected1d, LocallyConnected2d
from castalia.nn.convolutions.separable_convolution import SeparableConv1d, SeparableConv2d
from castalia.nn.convolutions.unpool import Positions, Unpool2d

__all__ = [
    "BORDERS",
    "Connectivity",
    "GlobalPool",
    "LocallyConnected1d",
    "LocallyConnected2d",
    "Positions",
    "SeparableConv1d",
    "SeparableConv2d",
    "Unpool2d",
    "channels_first",
    "channels_last",
    "compare_connectivity",
    "convolution_matrix",
    "convolve",
    "convolve_blocks",
    "dense_to_conv",
    "output_size",
    "pad",
    "receptive_field",
    "transposed_size",
]
