import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, laplace, norm, uniform
from torch.testing import assert_close

from castalia.errors import InvalidData, InvalidParameter
from castalia.objectives import conditional, is_pdf, is_pmf, marginal, posterior
from castalia.probability import chain_rule, conditionally_independent, table_size


def table(*shape, seed=0):
    p = np.random.default_rng(seed).random(shape)
    return torch.from_numpy(p / p.sum())


@given(st.integers(0, 1000))
def test_bayes_rule_holds_between_the_two_conditionals_of_a_table(seed):
    joint = table(3, 4, seed=seed)
    a, b = marginal(joint, 0), marginal(joint, 1)
    a_given_b, b_given_a = conditional(joint, given=1), conditional(joint, given=0)
    torch.testing.assert_close(a_given_b, b_given_a * a[:, None] / b)
    torch.testing.assert_close(a_given_b.sum(dim=0), torch.ones(4).double())
    torch.testing.assert_close((a_given_b * b).sum(dim=1), a)  # total probability
    torch.testing.assert_close(a_given_b.T, posterior(b_given_a.T, a))


def test_marginals_of_marginals_and_the_chain_rule_agree():
    joint = table(2, 3, 4)
    torch.testing.assert_close(marginal(marginal(joint, (0, 1)), 0), marginal(joint, 0))
    chain = marginal(joint, 0)[:, None, None]
    chain = chain * conditional(marginal(joint, (0, 1)), given=0)[:, :, None]
    torch.testing.assert_close(chain * conditional(joint, given=(0, 1)), joint)


def test_nothing_follows_from_the_impossible():
    found = conditional([[0.5, 0.5], [0.0, 0.0]], given=0)
    assert torch.isnan(found[1]).all()


def test_what_is_no_table_is_refused():
    with pytest.raises(InvalidData, match="`joint` must hold probabilities that sum to 1; .* 2"):
        marginal([[1.0, 1.0]], 0)
    with pytest.raises(InvalidParameter, match="numbers from 0 to 1; got .2."):
        marginal([[0.5, 0.5]], 2)


@pytest.mark.parametrize("p", [[1.0], [0.1, 0.2, 0.7], [[0.25, 0.25], [0.25, 0.25]]])
def test_probabilities_are_recognised(p):
    assert is_pmf(p)


@pytest.mark.parametrize("p", [[0.5], [1.1, -0.1], [0.5, 0.5, 0.5], [float("nan"), 1.0]])
def test_what_is_no_probability_is_found_out(p):
    assert not is_pmf(p)


DENSITIES = {
    "normal": (norm(1, 2).pdf, -np.inf, np.inf),
    "laplace": (laplace(0, 0.5).pdf, -np.inf, np.inf),
    "uniform": (uniform(2, 3).pdf, 2, 5),
    "beta": (beta(2, 3).pdf, 0, 1),
}


@pytest.mark.parametrize("name", DENSITIES)
def test_densities_are_recognised_and_scaled_ones_are_not(name):
    density, low, high = DENSITIES[name]
    assert is_pdf(density, low, high)
    assert not is_pdf(lambda x: 1.01 * density(x), low, high)


def test_a_function_that_dips_below_zero_is_no_density():
    def dips(x):  # integrates to 1 over (0, 1)
        return 1 + 2 * np.cos(2 * np.pi * x)

    assert not is_pdf(dips, 0, 1)


def test_a_table_has_an_entry_for_each_combination():
    assert table_size([100] * 3) - 1 == 999_999
    assert table_size([2] * (32 * 32 * 3)) == 2**3072
    assert table_size([3, 4, 5]) == np.ones((3, 4, 5)).size
    assert table_size([3, 1]) == 3  # one state is a constant
    with pytest.raises(InvalidParameter, match="at least 1; got"):
        table_size([2, 0])


def test_the_product_of_the_chain_rule_is_the_table():
    joint = torch.from_numpy(np.random.default_rng(0).dirichlet(np.ones(24)).reshape(2, 3, 4))
    one, two, three = chain_rule(joint)
    assert_close(one[:, None, None] * two[:, :, None] * three, joint, rtol=0, atol=1e-12)
    assert_close(three.sum(dim=2), torch.ones(2, 3, dtype=torch.float64))
    assert_close(two[1], joint[1].sum(dim=1) / joint[1].sum())


def independent_by_conditioning(joint):
    """Whether P(a | b, c) = P(a | c), the other form."""
    left = conditional(joint, [1, 2])
    right = conditional(joint.sum(dim=1), 1)[:, None, :]
    return torch.allclose(left, right.expand_as(left), atol=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_both_forms_of_conditional_independence_agree(seed):
    random = np.random.default_rng(seed)
    c = random.dirichlet(np.ones(3))
    a, b = random.dirichlet(np.ones(2), 3).T, random.dirichlet(np.ones(4), 3).T
    joint = np.einsum("ac,bc,c->abc", a, b, c)  # planted
    if seed % 2:
        joint = random.dirichlet(np.ones(24)).reshape(2, 4, 3)
    joint = torch.from_numpy(joint)
    assert conditionally_independent(joint, 0, 1, [2]) == (seed % 2 == 0)
    assert independent_by_conditioning(joint) == (seed % 2 == 0)
    assert not conditionally_independent(joint, 0, 1)  # c joins them


def test_a_chain_makes_its_ends_independent_given_the_middle():
    random = np.random.default_rng(1)
    a, b, c = (random.dirichlet(np.ones(3), size) for size in ((), 3, 3))
    joint = np.einsum("a,ab,bc->abc", a, b, c)
    assert conditionally_independent(joint, 0, 2, [1])
    assert not conditionally_independent(joint, 0, 2)
    one, two, three = chain_rule(joint)
    assert_close(two, torch.from_numpy(b))
    assert_close(three, torch.from_numpy(c)[None].expand(3, 3, 3))
