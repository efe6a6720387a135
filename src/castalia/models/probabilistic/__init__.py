"""Structured probabilistic models: Bayesian networks, Markov random fields, Boltzmann machines."""

from castalia.models.probabilistic.bayesian_network import BayesianNetwork
from castalia.models.probabilistic.conditional_nodes import GaussianNode, TableNode
from castalia.models.probabilistic.network_samples import WeightedRows

__all__ = ["BayesianNetwork", "GaussianNode", "TableNode", "WeightedRows"]
