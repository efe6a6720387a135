"""Models of signals and sequences."""

from castalia.models.sequence.convnet1d_classifier import ConvNet1dClassifier

__all__ = ["ConvNet1dClassifier"]
