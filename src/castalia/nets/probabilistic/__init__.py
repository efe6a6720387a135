"""Networks that are distributions over discrete variables."""

from castalia.nets.probabilistic.boltzmann_network import BoltzmannNetwork
from castalia.nets.probabilistic.energy_network import EnergyNetwork
from castalia.nets.probabilistic.potential_network import PotentialNetwork

__all__ = ["BoltzmannNetwork", "EnergyNetwork", "PotentialNetwork"]
