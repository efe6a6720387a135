"""Bayes' rule, and the error nobody can beat."""

import math

import numpy as np
import pytest
import scipy.stats as st
import torch
from torch.testing import assert_close

from castalia.errors import InvalidData, InvalidParameter, ShapeMismatch
from castalia.objectives import bayes_error, bayes_optimal, map_hypothesis, posterior


def test_the_posterior_weighs_likelihoods_by_priors():
    found = posterior([0.2, 0.6], [0.9, 0.1])
    assert found.tolist() == pytest.approx([0.75, 0.25])
    assert map_hypothesis([0.2, 0.6], [0.9, 0.1]).item() == 0
    assert map_hypothesis([0.2, 0.6], [0.5, 0.5]).item() == 1


def test_logarithms_reach_where_likelihoods_underflow():
    log = torch.tensor([-2000.0, -2001.0]).double()
    found = posterior(log, [0.5, 0.5], log=True)
    assert found.tolist() == pytest.approx([1 / (1 + math.exp(-1)), 1 / (1 + math.e)])
    with pytest.raises(InvalidData, match="some hypothesis must allow the data.*log=True"):
        posterior(log.exp(), [0.5, 0.5])


def test_the_most_probable_hypothesis_may_be_outvoted():
    votes = bayes_optimal([0.4, 0.3, 0.3], [1, 0, 0])  # h1 says plus (1), the others minus (0)
    assert votes.tolist() == pytest.approx([0.6, 0.4])
    assert votes.argmax().item() == 0 != [1, 0, 0][int(torch.tensor([0.4, 0.3, 0.3]).argmax())]
    soft = bayes_optimal([0.4, 0.6], [[0.9, 0.1], [0.2, 0.8]])
    assert soft.tolist() == pytest.approx([0.48, 0.52])


def test_gaussian_classes_the_softmax_of_the_log_joint_is_bayes_rule():
    x = np.linspace(-3, 5, 17)
    density = np.stack([st.norm(0, 1).pdf(x), st.norm(2, 1.5).pdf(x)], axis=1)
    prior = np.array([0.7, 0.3])
    by_hand = density * prior / (density @ prior)[:, None]
    assert_close(posterior(density, prior), torch.tensor(by_hand))
    softmax = torch.softmax(torch.tensor(np.log(density) + np.log(prior)), dim=1)
    assert_close(posterior(np.log(density), prior, log=True), softmax)


@pytest.mark.parametrize("prior", [0.5, 0.2, 0.9])
def test_the_bayes_error_is_the_integral_of_the_smaller_joint_density(prior):
    x = np.linspace(-12, 14, 400_001)
    smaller = np.minimum(prior * st.norm(0, 1.5).pdf(x), (1 - prior) * st.norm(2, 1.5).pdf(x))
    expected = np.trapezoid(smaller, x)
    assert bayes_error(0.0, 2.0, 1.5**2, prior=prior).item() == pytest.approx(expected, abs=1e-9)


def test_the_bayes_error_depends_on_the_mahalanobis_distance_alone():
    spread = torch.tensor([[2.0, 0.5], [0.5, 1.0]]).double()
    gap = torch.tensor([1.0, -1.0]).double()
    distance = float((gap @ torch.linalg.inv(spread) @ gap).sqrt())
    found = bayes_error([0.0, 0.0], gap, spread).item()
    assert found == pytest.approx(st.norm.cdf(-distance / 2))
    assert bayes_error(1.0, 1.0, 1.0, prior=0.3).item() == 0.3


@pytest.mark.parametrize(
    "call, error, said",
    [
        (
            lambda: posterior([-0.1, 1], [0.5, 0.5]),
            InvalidData,
            "got -0.1. Pass log=True",
        ),
        (lambda: posterior([0.1], [0.5, 0.5]), ShapeMismatch, r"must be \(…, 2\).*; got \(1,\)"),
        (lambda: posterior([1, 1], [0.5, 0.6]), InvalidData, "must sum to 1; got 1.1"),
        (lambda: bayes_optimal([0.5, 0.5], [1]), ShapeMismatch, "each of 2 hypotheses; got 1"),
        (lambda: bayes_error(0, 1, 1, prior=1.0), InvalidParameter, "between 0 and 1; got 1.0"),
    ],
    ids=["negative", "shape", "prior", "votes", "bounds"],
)
def test_wrong_input_is_named(call, error, said):
    with pytest.raises(error, match=said):
        call()
