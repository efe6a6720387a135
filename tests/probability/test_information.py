"""Information measures, against scipy and against samples."""

import math

import numpy as np
import pytest
import scipy.stats as st
import torch
from torch.distributions import Bernoulli, Categorical, MultivariateNormal, Normal
from torch.testing import assert_close

from castalia.errors import InvalidData, InvalidParameter, ShapeMismatch
from castalia.objectives import cross_entropy, entropy, kl_divergence, self_information

P = np.array([[0.5, 0.25, 0.25, 0.0], [0.1, 0.2, 0.3, 0.4]])
Q = np.array([[0.25, 0.25, 0.25, 0.25], [0.4, 0.3, 0.2, 0.1]])


@pytest.mark.parametrize("base", [None, 2, 10])
def test_entropy_and_divergence_are_scipys(base):
    np.testing.assert_allclose(entropy(P, base=base), st.entropy(P, axis=1, base=base))
    np.testing.assert_allclose(kl_divergence(P, Q, base=base), st.entropy(P, Q, axis=1, base=base))


def test_a_half_is_one_bit_and_an_eighth_three():
    assert self_information([0.5, 0.125, 1.0], base=2).tolist() == [1, 3, 0]
    assert self_information(0.0).item() == math.inf
    assert self_information(math.exp(-2)).item() == pytest.approx(2)


def test_the_uniform_distribution_has_log_k_and_a_certain_one_nothing():
    for k in (2, 8, 100):
        assert entropy(np.full(k, 1 / k), base=2).item() == pytest.approx(math.log2(k))
    assert entropy([0.0, 1.0, 0.0]).item() == 0


def test_the_divergence_is_zero_only_between_equals_and_not_symmetric():
    assert kl_divergence(P, P).tolist() == [0, 0]
    p, q = [0.5, 0.5], [0.9, 0.1]
    there, back = kl_divergence(p, q).item(), kl_divergence(q, p).item()
    assert there == pytest.approx(0.5 * math.log(0.5 / 0.9) + 0.5 * math.log(0.5 / 0.1))
    assert back == pytest.approx(0.9 * math.log(0.9 / 0.5) + 0.1 * math.log(0.1 / 0.5))
    assert there > 0 < back != there


def test_what_one_thinks_impossible_surprises_infinitely_unless_it_never_happens():
    assert kl_divergence([0.5, 0.5], [1.0, 0.0]).item() == math.inf
    assert cross_entropy([0.5, 0.5], [1.0, 0.0]).item() == math.inf
    assert kl_divergence([1.0, 0.0], [1.0, 0.0]).item() == 0
    assert cross_entropy([1.0, 0.0], [0.5, 0.5], base=2).item() == 1


@pytest.mark.parametrize("base", [None, 2])
def test_cross_entropy_is_entropy_plus_divergence(base):
    both = entropy(P, base=base) + kl_divergence(P, Q, base=base)
    assert_close(cross_entropy(P, Q, base=base), both, atol=1e-12, rtol=0)


def test_gaussians_have_their_closed_forms():
    p, q = Normal(torch.tensor(0.5).double(), 2.0), Normal(torch.tensor(-1.0).double(), 3.0)
    assert entropy(p).item() == pytest.approx(0.5 * math.log(2 * math.pi * math.e * 4))
    divergence = math.log(3 / 2) + (4 + 1.5**2) / (2 * 9) - 0.5
    assert kl_divergence(p, q).item() == pytest.approx(divergence)
    assert kl_divergence(p, q, base=2).item() == pytest.approx(divergence / math.log(2))
    x = np.random.default_rng(0).normal(0.5, 2.0, 200_000)
    sampled = -st.norm(-1, 3).logpdf(x)
    error = sampled.std() / math.sqrt(len(x))
    assert cross_entropy(p, q).item() == pytest.approx(sampled.mean(), abs=4 * error)


def test_several_dimensions_and_objects_of_discrete_distributions():
    spread = np.array([[2.0, 0.5], [0.5, 1.0]])
    joint = MultivariateNormal(torch.zeros(2).double(), torch.tensor(spread))
    assert entropy(joint).item() == pytest.approx(st.multivariate_normal([0, 0], spread).entropy())
    assert_close(entropy(Categorical(torch.tensor(P))), entropy(P))
    coin = entropy(Bernoulli(torch.tensor(0.25).double()))
    assert_close(coin, entropy([0.25, 0.75]))


@pytest.mark.parametrize(
    "call, error, said",
    [
        (lambda: entropy([0.5, 0.6]), InvalidData, "entropy: probabilities must sum to 1; got 1.1"),
        (lambda: entropy([-0.5, 1.5]), InvalidData, "must not be negative; got -0.5"),
        (lambda: entropy(0.5), ShapeMismatch, r"got one number, 0.5. Write \[p, 1 - p\]"),
        (lambda: kl_divergence([1.0], [0.5, 0.5]), ShapeMismatch, "same outcomes; got 1 and 2"),
        (lambda: self_information(1.5), InvalidData, "between 0 and 1; got 1.5"),
        (lambda: entropy([1.0], base=1), InvalidParameter, "`base` must be above 1.*; got 1"),
        (
            lambda: kl_divergence(Normal(0.0, 1.0), [0.5, 0.5]),
            InvalidParameter,
            "got Normal and list",
        ),
    ],
    ids=["sum", "negative", "number", "outcomes", "range", "base", "mixed"],
)
def test_what_is_no_distribution_is_refused(call, error, said):
    with pytest.raises(error, match=said):
        call()
