"""Models of signals and sequences."""

from castalia.models.sequence.convnet1d_classifier import ConvNet1dClassifier
from castalia.models.sequence.forecast_estimators import (
    RNNForecaster,
    TemporalConvNet,
    TransformerForecaster,
    WindowRegressor,
)
from castalia.models.sequence.naive_forecaster import NaiveForecaster
from castalia.models.sequence.recurrent_estimators import RNNClassifier, RNNRegressor
from castalia.models.sequence.rnn_generator import RNNGenerator
from castalia.models.sequence.rnn_tagger import RNNTagger

__all__ = [
    "ConvNet1dClassifier",
    "NaiveForecaster",
    "RNNClassifier",
    "RNNForecaster",
    "RNNGenerator",
    "RNNRegressor",
    "RNNTagger",
    "TemporalConvNet",
    "TransformerForecaster",
    "WindowRegressor",
]
