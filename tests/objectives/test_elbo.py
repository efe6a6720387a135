import numpy as np
import pytest
import torch
from scipy import optimize
from torch.testing import assert_close

from castalia.nets.generative import VariationalNetwork
from castalia.objectives import (
    ELBO,
    MixedLikelihood,
    evidence_lower_bound,
    gaussian_kl,
    importance_weights,
    log_normal,
    optimal_posterior,
    reparametrise,
)
from castalia.protocols import Batch
from castalia.utils.row_noise import RowNoise

JOINT = torch.tensor([0.02, 0.1, 0.05, 0.23], dtype=torch.double)  # p(h, v) of one v


def test_both_forms_of_the_bound_agree_and_lie_below_the_evidence():
    q = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.double)
    bound = evidence_lower_bound(JOINT.log(), q)
    evidence, posterior = JOINT.sum().log(), JOINT / JOINT.sum()
    divergence = (q * (q / posterior).log()).sum()
    assert_close(bound, evidence - divergence)
    assert bound < evidence
    assert_close(evidence_lower_bound(JOINT.log(), posterior), evidence)


def test_the_q_that_maximises_the_bound_is_the_posterior():
    def loss(logits):
        q = torch.from_numpy(logits).softmax(dim=0)
        return -float(evidence_lower_bound(JOINT.log(), q))

    found = optimize.minimize(loss, np.zeros(4), tol=1e-10).x
    best = optimal_posterior(JOINT.log())
    assert_close(torch.from_numpy(found).softmax(dim=0), best, atol=1e-4, rtol=1e-4)
    assert_close(best, JOINT / JOINT.sum())


def test_gradients_go_through_draws():
    mean = torch.tensor([0.7, -1.2], dtype=torch.double, requires_grad=True)
    deviation = torch.tensor([0.5, 1.5], dtype=torch.double, requires_grad=True)
    noise = torch.from_numpy(np.random.default_rng(0).normal(size=(200_000, 2)))
    z = reparametrise(mean, 2 * deviation.log(), noise)
    z.square().mean(dim=0).sum().backward()  # E z^2 = mu^2 + s^2
    assert_close(mean.grad, 2 * mean.detach(), atol=0.02, rtol=0.02)
    assert_close(deviation.grad, 2 * deviation.detach(), atol=0.02, rtol=0.02)


def test_the_divergence_in_closed_form_is_its_mean_over_draws():
    mean, log_variance = torch.tensor([0.8], dtype=torch.double), torch.tensor([-0.6]).double()
    noise = torch.from_numpy(np.random.default_rng(0).normal(size=(200_000, 1)))
    z = reparametrise(mean, log_variance, noise)
    drawn = (log_normal(z, mean, log_variance) - log_normal(z)).mean()
    assert_close(gaussian_kl(mean, log_variance).sum(), drawn, atol=5e-3, rtol=0)
    reference = torch.distributions.kl_divergence(
        torch.distributions.Normal(mean, (log_variance / 2).exp()),
        torch.distributions.Normal(0, 1),
    )
    assert_close(gaussian_kl(mean, log_variance), reference)


@pytest.fixture
def net():
    torch.manual_seed(0)
    return VariationalNetwork(torch.nn.Linear(2, 2), torch.nn.Linear(1, 2)).double()


def exact(net, likelihood, x):
    """Return log p(x) by Gauss–Hermite quadrature over the one code."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    z = torch.from_numpy(nodes)[:, None]
    each = [-likelihood.rows(net.decode(z), row.expand(len(z), -1)) for row in x]
    share = torch.from_numpy(weights / weights.sum()).log()
    return torch.stack([(fit + share).logsumexp(dim=0) for fit in each])


def test_the_bound_lies_below_the_likelihood_and_more_draws_bring_it_near(net):
    likelihood = MixedLikelihood(flags=2)
    x = torch.tensor([[0.0, 1.0], [1.0, 1.0]], dtype=torch.double)
    with torch.no_grad():
        truth = exact(net, likelihood, x)
        weights = importance_weights(net, likelihood, x, 20_000)
        assert (weights.mean(dim=0) < truth).all()
        assert_close(weights.logsumexp(dim=0) - np.log(20_000), truth, atol=0.02, rtol=0)


def test_frequencies_of_draws_are_the_probabilities_of_rows(net):  # p(x) = E_z p(x | z)
    likelihood, n = MixedLikelihood(flags=2), 0
    counts = torch.zeros(2, 2)
    with torch.no_grad():
        for noise in RowNoise.blocks(20_480, seed=0):
            rows = likelihood.sample(net.decode(noise.normal(1).double()), noise).long()
            counts.index_put_((rows[:, 0], rows[:, 1]), torch.tensor(1.0), accumulate=True)
            n += noise.rows
        for a in (0, 1):
            for b in (0, 1):
                row = torch.tensor([[float(a), float(b)]], dtype=torch.double)
                assert abs(counts[a, b] / n - exact(net, likelihood, row).exp()) < 0.01


def test_terms_are_the_bound_and_its_parts(net):
    likelihood, x = MixedLikelihood(flags=2), torch.ones(3, 2, dtype=torch.double)
    terms = ELBO(likelihood, beta=2.0).terms(net, Batch(x), "train")
    assert_close(terms["loss"], terms["reconstruction"] + 2 * terms["kl"])
    mean, log_variance = net.posterior(x)
    assert_close(terms["kl"], gaussian_kl(mean, log_variance).sum(dim=1).mean())


def test_beta_rises_during_the_warm_up_and_goes_on_after_a_stop(net):
    objective = ELBO(MixedLikelihood(flags=2), warm_up=2.0)
    objective.rows = 10
    batch = Batch(torch.ones(5, 2, dtype=torch.double))
    for wanted in (0.25, 0.5):
        objective.terms(net.train(), batch, "train")
        assert float(objective.weight(net)) == wanted
    other = ELBO(MixedLikelihood(flags=2), warm_up=2.0)
    other.rows = 10
    other.load_state_dict(objective.state_dict())
    assert float(other.weight(net)) == 0.5
    assert float(other.weight(net.eval())) == 1.0
