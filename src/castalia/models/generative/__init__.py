"""Models of whole rows: what they are made of, and new ones like them."""

from castalia.models.generative.deep_belief_network import DeepBeliefNetwork
from castalia.models.generative.restricted_boltzmann_machine import RestrictedBoltzmannMachine

__all__ = ["DeepBeliefNetwork", "RestrictedBoltzmannMachine"]
