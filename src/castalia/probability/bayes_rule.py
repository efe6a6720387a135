"""Bayes' rule with a few hypotheses or classes, and the error that nobody can beat.

P(h | D) = P(D | h) P(h) / sum_h' P(D | h') P(h').  Shapes: H hypotheses or classes, V values.
"""

import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.distributions import Normal

from castalia.errors import InvalidData, InvalidParameter, ShapeMismatch
from castalia.probability.information import as_numbers, as_probabilities

__all__ = ["bayes_error", "bayes_optimal", "map_hypothesis", "posterior"]


def posterior(likelihood: Any, prior: Any, *, log: bool = False) -> Tensor:
    """Probability of each hypothesis after seeing data, by Bayes' rule.

    It is the softmax of the log joint ln P(D | h) P(h), which is how it is computed.

    Parameters
    ----------
    likelihood
        P(D | h), or densities, (…, H).
    prior
        P(h), (H,), sums to 1.
    log
        Whether ``likelihood`` holds logarithms; needed where the likelihoods underflow.

    Examples
    --------
    >>> posterior([0.2, 0.6], [0.9, 0.1])
    tensor([0.7500, 0.2500], dtype=torch.float64)
    """
    joint = _log_joint("posterior", likelihood, prior, log)
    if bool((joint == -torch.inf).all(dim=-1).any()):
        raise InvalidData(
            "posterior: some hypothesis must allow the data; got likelihood times prior zero for "
            "all. Pass log-likelihoods with log=True if they underflow."
        )
    return torch.softmax(joint, dim=-1)


def map_hypothesis(likelihood: Any, prior: Any, *, log: bool = False) -> Tensor:
    """Index of the most probable hypothesis, argmax P(D | h) P(h).

    Under a uniform prior it is the maximum likelihood hypothesis.

    Examples
    --------
    >>> map_hypothesis([0.2, 0.6], [0.9, 0.1])
    tensor(0)
    """
    return _log_joint("map_hypothesis", likelihood, prior, log).argmax(dim=-1)


def bayes_optimal(posterior: Any, predictions: Any) -> Tensor:
    """Probability of each value when all hypotheses vote: sum_h P(v | h) P(h | D).

    Its argmax is the Bayes-optimal answer, which may differ from that of the single most probable
    hypothesis.

    Parameters
    ----------
    posterior
        P(h | D), (H,).
    predictions
        P(v | h), (H, V); or the value each hypothesis answers, (H,) whole numbers.

    Examples
    --------
    >>> bayes_optimal([0.4, 0.3, 0.3], [1, 0, 0])  # +, -, -
    tensor([0.6000, 0.4000], dtype=torch.float64)
    """
    weight = as_probabilities("bayes_optimal", posterior)
    given = torch.as_tensor(
        predictions if isinstance(predictions, Tensor) else np.asarray(predictions)
    )
    if len(given) != len(weight):
        raise ShapeMismatch(
            f"bayes_optimal: `predictions` must have a row for each of {len(weight)} hypotheses; "
            f"got {len(given)}."
        )
    if given.ndim == 1 and not given.is_floating_point():
        given = F.one_hot(given.long())
    return weight @ as_probabilities("bayes_optimal", given.to(weight))


def bayes_error(first: Any, second: Any, covariance: Any, *, prior: float = 0.5) -> Tensor:
    """Lowest attainable error for two Gaussian classes of one covariance, in closed form.

    With d the Mahalanobis distance of the means and t = ln(prior / (1 - prior)):
    prior Phi(-d/2 - t/d) + (1 - prior) Phi(-d/2 + t/d).

    Parameters
    ----------
    first, second
        Means of the classes, (D,) or numbers.
    covariance
        Their common covariance, (D, D) or a variance.
    prior
        Probability of the first class, between 0 and 1.

    Examples
    --------
    >>> bayes_error(0.0, 2.0, 1.0)  # Phi(-1)
    tensor(0.1587, dtype=torch.float64)
    """
    if not 0 < prior < 1:
        raise InvalidParameter(f"bayes_error: `prior` must lie between 0 and 1; got {prior}.")
    gap = (as_numbers(second) - as_numbers(first)).reshape(-1, 1)
    spread = as_numbers(covariance).reshape(len(gap), len(gap)).to(gap)
    d = (gap.T @ torch.linalg.solve(spread, gap)).squeeze().sqrt()
    if float(d) == 0:
        return torch.full_like(d, min(prior, 1 - prior))
    t = math.log(prior / (1 - prior))
    phi = Normal(torch.zeros_like(d), torch.ones_like(d)).cdf
    return prior * phi(-d / 2 - t / d) + (1 - prior) * phi(-d / 2 + t / d)


def _log_joint(owner: str, likelihood: Any, prior: Any, log: bool) -> Tensor:
    """Return ln P(D | h) P(h), (…, H)."""
    values, weight = as_numbers(likelihood), as_probabilities(owner, prior)
    if values.shape[-1:] != weight.shape[-1:]:
        raise ShapeMismatch(
            f"{owner}: `likelihood` must be (…, {weight.shape[-1]}), as the prior has hypotheses; "
            f"got {tuple(values.shape)}."
        )
    if not log and bool((values < 0).any()):
        raise InvalidData(
            f"{owner}: likelihoods must not be negative; got {float(values.min()):g}. "
            "Pass log=True for log-likelihoods."
        )
    return (values if log else values.log()) + weight.log()
