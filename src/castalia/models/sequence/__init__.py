"""Models of signals and sequences."""

from castalia.models.sequence.convnet1d_classifier import ConvNet1dClassifier
from castalia.models.sequence.hidden_markov_model import HiddenMarkovModel
from castalia.models.sequence.kalman_estimator import KalmanFilter
from castalia.models.sequence.linear_dynamical_system import LinearDynamicalSystem

__all__ = [
    "ConvNet1dClassifier",
    "HiddenMarkovModel",
    "KalmanFilter",
    "LinearDynamicalSystem",
]
