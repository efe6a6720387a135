"""Networks that are distributions over binary units."""

from castalia.nets.probabilistic.boltzmann_network import BoltzmannNetwork

__all__ = ["BoltzmannNetwork"]
