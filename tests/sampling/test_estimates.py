"""Monte Carlo, importance weights and annealing, against sums that are known."""

import math

import pytest
import torch
from torch.distributions import Normal

from castalia.errors import InvalidData, InvalidParameter
from castalia.sampling import annealed_importance, importance_sampling, las_vegas, monte_carlo

P = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64)
F = torch.tensor([3.0, 1.0, 2.0, 5.0], dtype=torch.float64)
EXACT = float(P @ F)


def draws_from(law):
    return lambda n, g: torch.multinomial(law, n, replacement=True, generator=g)


def test_the_error_of_a_mean_is_sigma_over_root_n():
    found = [
        float(monte_carlo(lambda i: F[i], draws_from(P), 400, random_state=s).value)
        for s in range(800)
    ]
    sigma = math.sqrt(float(P @ F.square()) - EXACT**2)
    assert torch.tensor(found).std().item() == pytest.approx(sigma / 20, rel=0.1)
    assert sum(found) / 800 == pytest.approx(EXACT, abs=5 * sigma / 20 / math.sqrt(800))
    said = monte_carlo(lambda i: F[i], draws_from(P), 400, random_state=0)
    assert float(said.error) == pytest.approx(sigma / 20, rel=0.15)


def test_las_vegas_is_always_right_in_random_time_and_monte_carlo_the_other_way_round():
    values = torch.rand(501, generator=torch.Generator().manual_seed(0)).tolist()
    runs = [las_vegas(values, 250, random_state=s) for s in range(30)]
    assert {run.value for run in runs} == {sorted(values)[250]}
    assert len({run.comparisons for run in runs}) > 20
    assert [las_vegas([2.0, 1.0, 2.0], k, random_state=0).value for k in range(3)] == [1, 2, 2]

    def pi(n):
        corner = lambda n, g: torch.rand(n, 2, generator=g)  # noqa: E731
        inside = lambda x: 4.0 * (x.square().sum(dim=1) < 1)  # noqa: E731
        errors = [
            float(monte_carlo(inside, corner, n, random_state=s).value) - math.pi for s in range(60)
        ]
        return torch.tensor(errors).square().mean().sqrt().item()

    assert pi(6400) == pytest.approx(pi(400) / 4, rel=0.4)
    with pytest.raises(InvalidParameter, match="`k` must be from 0 to 500"):
        las_vegas(values, 501)


Q = torch.tensor([0.4, 0.3, 0.2, 0.1], dtype=torch.float64)


def weighed(proposal, n, seed, scale=1.0, **settings):
    return importance_sampling(
        lambda i: F[i],
        lambda i: (scale * P[i]).log(),
        draws_from(proposal),
        lambda i: proposal[i].log(),
        n,
        random_state=seed,
        **settings,
    )


def test_importance_weights_make_another_proposal_unbiased():
    found = [weighed(Q, 50, seed) for seed in range(1000)]
    values = torch.stack([one.value for one in found])
    sigma = math.sqrt(float((P.square() * F.square() / Q).sum()) - EXACT**2)
    assert values.mean().item() == pytest.approx(EXACT, abs=4 * sigma / math.sqrt(50_000))
    assert values.std().item() == pytest.approx(sigma / math.sqrt(50), rel=0.1)
    large = weighed(Q, 100_000, 0)
    assert float(large.error) == pytest.approx(sigma / math.sqrt(100_000), rel=0.03)
    assert large.ess / large.n == pytest.approx(1 / float((P.square() / Q).sum()), rel=0.03)


def test_the_best_proposal_has_no_variance():
    best = P * F / (P @ F)
    found = [float(weighed(best, 5, seed).value) for seed in range(20)]
    assert found == pytest.approx([EXACT] * 20, abs=1e-12)
    assert float(weighed(best, 50, 0).error) < 1e-12
    # what it is compared with: E|f| and E f differ when f has two signs
    plain = weighed(Q, 100_000, 0)
    assert plain.optimal_error == 0.0


def test_the_best_error_is_reported_for_values_of_two_signs():
    signed = torch.tensor([3.0, -1.0, 2.0, -5.0], dtype=torch.float64)
    n = 200_000
    found = importance_sampling(
        lambda i: signed[i], lambda i: P[i].log(), draws_from(Q), lambda i: Q[i].log(), n,
        random_state=0,
    )  # fmt: skip
    best = math.sqrt(float(P @ signed.abs()) ** 2 - float(P @ signed) ** 2) / math.sqrt(n)
    assert found.optimal_error == pytest.approx(best, rel=0.02)
    assert found.optimal_error < float(found.error)


def test_self_normalised_weights_need_no_constant():
    found = weighed(Q, 200_000, 0, scale=7.0, self_normalised=True)
    assert float(found.value) == pytest.approx(EXACT, abs=4 * float(found.error))
    sigma = math.sqrt(float((P.square() / Q * (F - EXACT).square()).sum()))  # the delta method's
    assert float(found.error) == pytest.approx(sigma / math.sqrt(200_000), rel=0.03)
    assert found.ess / found.n == pytest.approx(1 / float((P.square() / Q).sum()), rel=0.03)
    assert found.log_z == pytest.approx(math.log(7), abs=0.02)
    few = [abs(float(weighed(Q, 100, s, scale=7.0, self_normalised=True).value) - EXACT)
           for s in range(50)]  # fmt: skip
    assert sum(few) / 50 > 5 * abs(float(found.value) - EXACT)  # consistent: it tends to it


def test_weights_that_make_no_sense_are_refused():
    with pytest.raises(InvalidData, match="p must be above 0 at some draw; it is 0 at all 10"):
        importance_sampling(
            torch.abs, lambda x: x - math.inf, lambda n, g: torch.rand(n), lambda x: 0 * x, 10
        )
    with pytest.raises(InvalidData, match="must be below infinity; got inf at draw 0"):
        importance_sampling(
            torch.abs, lambda x: 0 * x, lambda n, g: torch.rand(n), lambda x: x - math.inf, 10
        )
    with pytest.raises(InvalidParameter, match="`n` must be a whole number of at least 2"):
        monte_carlo(torch.abs, lambda n, g: torch.rand(n), 1)


def annealed(betas, runs=200, seed=0):
    """Normal of variance 1 to one of variance 1/9, by Metropolis steps of the right width."""
    g = torch.Generator().manual_seed(seed)

    def log_density(x, beta):
        return -(0.5 + 4 * beta) * x.square()

    def step(x, beta, source):
        for _ in range(3):
            new = x + torch.randn(len(x), generator=source, dtype=x.dtype) * 0.8
            better = log_density(new, beta) - log_density(x, beta)
            x = torch.where(torch.rand(len(x), generator=source).log() < better, new, x)
        return x

    start = torch.randn(runs, generator=g, dtype=torch.float64)
    return annealed_importance(
        log_density, step, start, log_z=0.5 * math.log(2 * math.pi), betas=betas, random_state=seed
    )


def test_annealing_finds_log_z_with_its_error():
    exact = float(-Normal(0.0, 1 / 3).log_prob(torch.tensor(0.0)))
    found = annealed(100)
    assert found.low < exact < found.high
    assert found.log_z == pytest.approx(exact, abs=0.1)
    assert found.ess > annealed(2).ess
    assert annealed([0.0, 0.5, 1.0]).log_z == annealed(2).log_z


@pytest.mark.parametrize("betas", [0, [0.0, 0.5], [0.0, 0.7, 0.6, 1.0]])
def test_temperatures_rise_from_0_to_1(betas):
    with pytest.raises(InvalidParameter, match="rise from 0 to 1"):
        annealed(betas)


def test_weights_that_overflow_in_annealing_are_refused():
    with pytest.raises(InvalidData, match="3 of 3 are not. Scale the weights down"):
        annealed_importance(lambda x, b: b * x / 0, lambda x, b, g: x, torch.ones(3), betas=2)
