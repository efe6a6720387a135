"""Models of whole rows: codes to rebuild them from, densities, and new ones like them."""

from castalia.models.generative.adversarial_network import GenerativeAdversarialNetwork
from castalia.models.generative.autoencoders import (
    Autoencoder,
    ContractiveAutoencoder,
    DenoisingAutoencoder,
    LinearAutoencoder,
    SparseAutoencoder,
    StochasticAutoencoder,
)
from castalia.models.generative.deep_belief_network import DeepBeliefNetwork
from castalia.models.generative.diffusion_model import DiffusionModel
from castalia.models.generative.draw_model import DRAW
from castalia.models.generative.moment_matching_network import MomentMatching
from castalia.models.generative.normalizing_flow import NormalizingFlow
from castalia.models.generative.pca import PCA
from castalia.models.generative.restricted_boltzmann_machine import RestrictedBoltzmannMachine
from castalia.models.generative.stacked_autoencoder import StackedAutoencoder
from castalia.models.generative.variational_autoencoder import VariationalAutoencoder

__all__ = [
    "DRAW",
    "PCA",
    "Autoencoder",
    "ContractiveAutoencoder",
    "DeepBeliefNetwork",
    "DenoisingAutoencoder",
    "DiffusionModel",
    "GenerativeAdversarialNetwork",
    "LinearAutoencoder",
    "MomentMatching",
    "NormalizingFlow",
    "RestrictedBoltzmannMachine",
    "SparseAutoencoder",
    "StackedAutoencoder",
    "StochasticAutoencoder",
    "VariationalAutoencoder",
]
