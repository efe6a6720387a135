"""Networks that give rows back."""

from castalia.nets.generative.restricted_boltzmann_network import RestrictedBoltzmannNetwork

__all__ = ["RestrictedBoltzmannNetwork"]
