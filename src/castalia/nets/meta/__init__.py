"""Networks that take whole data sets as inputs."""

from castalia.nets.meta.neural_process import LatentProcess, NeuralProcess

__all__ = ["LatentProcess", "NeuralProcess"]
