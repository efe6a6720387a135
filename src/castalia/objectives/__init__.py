"""What is minimised: one file a learning principle."""

from castalia.objectives.base import Objective, Penalty, weighted_mean
from castalia.objectives.likelihood import (
    LIKELIHOODS,
    GaussianLikelihood,
    LaplaceLikelihood,
    Likelihood,
    MixtureLikelihood,
    PoissonLikelihood,
)
from castalia.objectives.penalties import L1, L2
from castalia.objectives.supervised import (
    AbsoluteError,
    BinaryCrossEntropy,
    CrossEntropy,
    SquaredError,
    smooth_labels,
)

__all__ = [
    "L1",
    "L2",
    "LIKELIHOODS",
    "AbsoluteError",
    "BinaryCrossEntropy",
    "CrossEntropy",
    "GaussianLikelihood",
    "LaplaceLikelihood",
    "Likelihood",
    "MixtureLikelihood",
    "Objective",
    "Penalty",
    "PoissonLikelihood",
    "SquaredError",
    "smooth_labels",
    "weighted_mean",
]
