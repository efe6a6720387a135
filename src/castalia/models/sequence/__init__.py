"""Models of signals and sequences."""

from castalia.models.sequence.convnet1d_classifier import ConvNet1dClassifier
from castalia.models.sequence.echo_state_network import EchoStateClassifier, EchoStateNetwork
from castalia.models.sequence.forecast_estimators import (
    RNNForecaster,
    TemporalConvNet,
    TransformerForecaster,
    WindowRegressor,
)
from castalia.models.sequence.hidden_markov_model import HiddenMarkovModel
from castalia.models.sequence.kalman_estimator import KalmanFilter
from castalia.models.sequence.linear_dynamical_system import LinearDynamicalSystem
from castalia.models.sequence.naive_forecaster import NaiveForecaster
from castalia.models.sequence.recurrent_estimators import RNNClassifier, RNNRegressor
from castalia.models.sequence.reservoir import Reservoir, random_reservoir, spectral_radius
from castalia.models.sequence.reservoir_measures import (
    EchoStateReport,
    MemoryCapacity,
    echo_state_property,
    memory_capacity,
)
from castalia.models.sequence.reservoir_plasticity import intrinsic_plasticity
from castalia.models.sequence.rnn_generator import RNNGenerator
from castalia.models.sequence.rnn_tagger import RNNTagger

__all__ = [
    "ConvNet1dClassifier",
    "EchoStateClassifier",
    "EchoStateNetwork",
    "EchoStateReport",
    "HiddenMarkovModel",
    "KalmanFilter",
    "LinearDynamicalSystem",
    "MemoryCapacity",
    "NaiveForecaster",
    "RNNClassifier",
    "RNNForecaster",
    "RNNGenerator",
    "RNNRegressor",
    "RNNTagger",
    "Reservoir",
    "TemporalConvNet",
    "TransformerForecaster",
    "WindowRegressor",
    "echo_state_property",
    "intrinsic_plasticity",
    "memory_capacity",
    "random_reservoir",
    "spectral_radius",
]
