"""Structured probabilistic models: Bayesian networks, Markov random fields, Boltzmann machines."""

from castalia.models.probabilistic.bayesian_network import BayesianNetwork
from castalia.models.probabilistic.belief_propagation import Beliefs, MeanField
from castalia.models.probabilistic.boltzmann_machine import BoltzmannMachine
from castalia.models.probabilistic.conditional_nodes import GaussianNode, TableNode
from castalia.models.probabilistic.energy_model import EnergyModel
from castalia.models.probabilistic.ising_images import RestoredImage, restore_image
from castalia.models.probabilistic.network_samples import WeightedRows
from castalia.models.probabilistic.undirected_models import FactorGraph, MarkovRandomField

__all__ = [
    "BayesianNetwork",
    "Beliefs",
    "BoltzmannMachine",
    "EnergyModel",
    "FactorGraph",
    "GaussianNode",
    "MarkovRandomField",
    "MeanField",
    "RestoredImage",
    "TableNode",
    "WeightedRows",
    "restore_image",
]
