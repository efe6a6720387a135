"""Models of signals and sequences."""

from castalia.models.sequence.convnet1d_classifier import ConvNet1dClassifier
from castalia.models.sequence.echo_state_classifier import EchoStateClassifier
from castalia.models.sequence.echo_state_network import EchoStateNetwork
from castalia.models.sequence.forecast_estimators import (
    RNNForecaster,
    TemporalConvNet,
    TransformerForecaster,
    WindowRegressor,
)
from castalia.models.sequence.hidden_markov_model import HiddenMarkovModel
from castalia.models.sequence.kalman_estimator import KalmanFilter
from castalia.models.sequence.linear_dynamical_system import LinearDynamicalSystem
from castalia.models.sequence.liquid_state_machine import LiquidStateMachine
from castalia.models.sequence.naive_forecaster import NaiveForecaster
from castalia.models.sequence.recurrent_estimators import RNNClassifier, RNNRegressor
from castalia.models.sequence.recursive_network import RecursiveNetwork
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
from castalia.models.sequence.spiking_encoders import delta_code, latency_code, rate_code
from castalia.models.sequence.spiking_neurons import DynamicSynapse, IntegrateAndFire

__all__ = [
    "ConvNet1dClassifier",
    "DynamicSynapse",
    "EchoStateClassifier",
    "EchoStateNetwork",
    "EchoStateReport",
    "HiddenMarkovModel",
    "IntegrateAndFire",
    "KalmanFilter",
    "LinearDynamicalSystem",
    "LiquidStateMachine",
    "MemoryCapacity",
    "NaiveForecaster",
    "RNNClassifier",
    "RNNForecaster",
    "RNNGenerator",
    "RNNRegressor",
    "RNNTagger",
    "RecursiveNetwork",
    "Reservoir",
    "TemporalConvNet",
    "TransformerForecaster",
    "WindowRegressor",
    "delta_code",
    "echo_state_property",
    "intrinsic_plasticity",
    "latency_code",
    "memory_capacity",
    "random_reservoir",
    "rate_code",
    "spectral_radius",
]
