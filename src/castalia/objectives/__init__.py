"""What is minimised: one file a learning principle."""

from castalia.objectives.base import BatchPenalty, Objective, Penalty, weighted_mean
from castalia.objectives.bayes import bayes_error, bayes_optimal, map_hypothesis, posterior
from castalia.objectives.information import (
    cross_entropy,
    entropy,
    kl_divergence,
    self_information,
)
from castalia.objectives.likelihood import (
    LIKELIHOODS,
    BernoulliLikelihood,
    GaussianLikelihood,
    LaplaceLikelihood,
    Likelihood,
    MixtureLikelihood,
    MultinoulliLikelihood,
    PoissonLikelihood,
)
from castalia.objectives.margin import Hinge, Logistic, PerceptronLoss, ZeroOne, margins
from castalia.objectives.penalties import L1, L2, Lq, Tied
from castalia.objectives.representation import ActivationSparsity, CodeNorm, Contractive
from castalia.objectives.similarity import Contrastive, Triplet
from castalia.objectives.supervised import (
    AbsoluteError,
    BinaryCrossEntropy,
    CrossEntropy,
    SquaredError,
    smooth_labels,
)
from castalia.objectives.tables import conditional, is_pdf, is_pmf, marginal

__all__ = [
    "LIKELIHOODS",
    "AbsoluteError",
    "ActivationSparsity",
    "BatchPenalty",
    "BernoulliLikelihood",
    "BinaryCrossEntropy",
    "CodeNorm",
    "Contractive",
    "Contrastive",
    "CrossEntropy",
    "GaussianLikelihood",
    "Hinge",
    "L1",
    "L2",
    "LaplaceLikelihood",
    "Likelihood",
    "Logistic",
    "Lq",
    "MixtureLikelihood",
    "MultinoulliLikelihood",
    "Objective",
    "Penalty",
    "PerceptronLoss",
    "PoissonLikelihood",
    "SquaredError",
    "Tied",
    "Triplet",
    "ZeroOne",
    "bayes_error",
    "bayes_optimal",
    "conditional",
    "cross_entropy",
    "entropy",
    "is_pdf",
    "is_pmf",
    "kl_divergence",
    "map_hypothesis",
    "marginal",
    "margins",
    "posterior",
    "self_information",
    "smooth_labels",
    "weighted_mean",
]
