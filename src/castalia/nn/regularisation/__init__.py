"""Dropout in its forms, and noise on inputs or hidden units."""

from castalia.nn.regularisation.dropout_layers import (
    MonteCarloDropout,
    OriginalDropout,
    check_keep,
    dropout_on,
)
from castalia.nn.regularisation.dropout_masks import all_masks, geometric_ensemble
from castalia.nn.regularisation.gaussian_noise import GaussianNoise
from castalia.nn.regularisation.weight_scaling import scale_weights, with_dropout

__all__ = [
    "GaussianNoise",
    "MonteCarloDropout",
    "OriginalDropout",
    "all_masks",
    "check_keep",
    "dropout_on",
    "geometric_ensemble",
    "scale_weights",
    "with_dropout",
]
