"""Information measures, Bayes' rule, tables of probabilities, factors and graphs."""

from castalia.probability.bayes_rule import bayes_error, bayes_optimal, map_hypothesis, posterior
from castalia.probability.d_separation import d_separated
from castalia.probability.factors import Factor
from castalia.probability.information import (
    cross_entropy,
    entropy,
    kl_divergence,
    self_information,
)
from castalia.probability.junction_tree import JunctionTree
from castalia.probability.probability_tables import (
    chain_rule,
    conditional,
    conditionally_independent,
    is_pdf,
    is_pmf,
    marginal,
    table_size,
)

__all__ = [
    "Factor",
    "JunctionTree",
    "bayes_error",
    "bayes_optimal",
    "chain_rule",
    "conditional",
    "conditionally_independent",
    "cross_entropy",
    "d_separated",
    "entropy",
    "is_pdf",
    "is_pmf",
    "kl_divergence",
    "map_hypothesis",
    "marginal",
    "posterior",
    "self_information",
    "table_size",
]
