"""Networks that take whole data sets as inputs."""

from castalia.nets.meta.neural_process import NeuralProcess

__all__ = ["NeuralProcess"]
