"""Networks that give rows back."""

from castalia.nets.generative.adversarial_pair import (
    AdversarialPair,
    GeneratorNetwork,
    affine_generator,
)
from castalia.nets.generative.autoencoder_network import AutoencoderNetwork, TiedAutoencoder
from castalia.nets.generative.coders import ConvDecoder, ConvEncoder, decoder, encoder
from castalia.nets.generative.coupling_flow import CouplingFlow
from castalia.nets.generative.denoiser import DenseDenoiser, ImageDenoiser
from castalia.nets.generative.draw_network import DRAWNetwork
from castalia.nets.generative.one_hot_rows import OneHotRows
from castalia.nets.generative.restricted_boltzmann_network import RestrictedBoltzmannNetwork
from castalia.nets.generative.stacked_network import StackedNetwork
from castalia.nets.generative.variational_network import VariationalNetwork

__all__ = [
    "AdversarialPair",
    "AutoencoderNetwork",
    "ConvDecoder",
    "ConvEncoder",
    "CouplingFlow",
    "DRAWNetwork",
    "DenseDenoiser",
    "GeneratorNetwork",
    "ImageDenoiser",
    "OneHotRows",
    "RestrictedBoltzmannNetwork",
    "StackedNetwork",
    "TiedAutoencoder",
    "VariationalNetwork",
    "affine_generator",
    "decoder",
    "encoder",
]
