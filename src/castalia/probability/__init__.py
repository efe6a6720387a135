"""Information measures, Bayes' rule, and tables of probabilities."""

from castalia.probability.bayes_rule import bayes_error, bayes_optimal, map_hypothesis, posterior
from castalia.probability.information import (
    cross_entropy,
    entropy,
    kl_divergence,
    self_information,
)
from castalia.probability.probability_tables import conditional, is_pdf, is_pmf, marginal

__all__ = [
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
    "posterior",
    "self_information",
]
