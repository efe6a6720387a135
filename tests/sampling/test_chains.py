"""Gibbs, Metropolis and Hamiltonian chains against enumeration, and what their diagnostics see."""

import itertools

import numpy as np
import pytest
import torch

from castalia.errors import InvalidData, InvalidParameter, ShapeMismatch
from castalia.sampling import (
    IsingLattice,
    MarkovChain,
    block_gibbs,
    effective_sample_size,
    gibbs,
    hamiltonian,
    metropolis,
    split_r_hat,
)

# A small Boltzmann machine: 4 bits in a ring, log p~ = x U x / 2 + b x.
U = torch.tensor(
    [[0, 1.0, 0, -0.7], [1.0, 0, 0.5, 0], [0, 0.5, 0, 1.2], [-0.7, 0, 1.2, 0]], dtype=torch.float64
)
B = torch.tensor([0.2, -0.5, 0.1, -0.3], dtype=torch.float64)
STATES = torch.tensor(list(itertools.product((0, 1), repeat=4)))


def law():
    x = STATES.double()
    return ((x @ U * x).sum(dim=1) / 2 + x @ B).softmax(dim=0)


def log_conditional(x, i):
    drive = x.double() @ U[:, i] + B[i]
    return torch.stack([torch.zeros_like(drive), drive], dim=1)


def kernel(block):
    """Exact transition matrix of drawing a block again, (16, 16), columns summing to one."""
    p, others = law(), [i for i in range(4) if i not in block]
    same = (STATES[:, None, others] == STATES[None][..., others]).all(dim=-1).double()
    return (same * p[:, None] / (same * p[:, None]).sum(dim=0)).numpy()


def frequencies(draws):
    code = (draws.long() * torch.tensor([8, 4, 2, 1])).sum(dim=-1).flatten()
    return torch.bincount(code, minlength=16).double() / len(code)


def test_gibbs_marginals_equal_enumeration():
    chains = gibbs(
        log_conditional, torch.zeros(200, 4, dtype=torch.long), steps=300, burn_in=20,
        random_state=0,
    )  # fmt: skip
    exact = (law()[:, None] * STATES).sum(dim=0)
    assert ((chains.mean - exact).abs() < 5 * chains.error).all()
    assert (frequencies(chains.draws) - law()).abs().max() < 0.006
    assert chains.r_hat.max() < 1.01


def test_a_gibbs_step_keeps_detailed_balance():
    for i in range(4):
        step = MarkovChain(kernel([i]))
        assert step.detailed_balance(law().numpy()) < 1e-15
    # and a sweep of the sampler is their product: from one state, the frequencies of the next
    start = STATES[11].repeat(40_000, 1)
    swept = gibbs(log_conditional, start, steps=1, random_state=0).draws
    wanted = (kernel([3]) @ kernel([2]) @ kernel([1]) @ kernel([0]))[:, 11]
    np.testing.assert_allclose(frequencies(swept), wanted, atol=0.01)


def pair(update):
    """Blocks {0, 2} and {1, 3}: no bit of one is another's neighbour."""

    def draw(x, source):
        drive = x.double() @ U[:, update] + B[update]
        x[:, update] = (
            torch.rand(drive.shape, generator=source, dtype=drive.dtype) < drive.sigmoid()
        ).to(x.dtype)
        return x

    return draw


def test_block_gibbs_has_the_same_law_and_mixes_faster():
    chains = block_gibbs(
        [pair([0, 2]), pair([1, 3])], torch.zeros(200, 4), steps=300, burn_in=20, random_state=1
    )
    assert (frequencies(chains.draws) - law()).abs().max() < 0.006
    # exactly: a turn of two blocks against a step of one random site and a turn of four sites
    blocks = MarkovChain(kernel([1, 3]) @ kernel([0, 2]))
    sites = [kernel([i]) for i in range(4)]
    np.testing.assert_allclose(blocks.stationary(), law(), atol=1e-12)
    random_site = MarkovChain(sum(sites) / 4)
    assert blocks.second_eigenvalue < random_site.second_eigenvalue**4
    assert blocks.mixing_time(0.01) < random_site.mixing_time(0.01) / 4


def test_metropolis_and_hamiltonian_find_a_correlated_normal():
    precision = torch.tensor([[2.0, 1.2], [1.2, 1.5]], dtype=torch.float64)
    wanted = torch.linalg.inv(precision)

    def log_density(x):
        return -((x - 3) @ precision * (x - 3)).sum(dim=1) / 2

    start = torch.zeros(200, 2, dtype=torch.float64)
    random_walk = metropolis(log_density, start, steps=600, burn_in=100, random_state=0)
    guided = hamiltonian(log_density, start, leaps=6, steps=100, burn_in=40, random_state=0)
    for chains in (random_walk, guided):
        assert (chains.r_hat < 1.05).all()
        assert ((chains.mean - 3).abs() < 5 * chains.error).all()
        torch.testing.assert_close(chains.flat.T.cov(), wanted, atol=0.06, rtol=0)
    assert 0.15 < random_walk.acceptance < 0.45
    assert 0.5 < guided.acceptance < 0.95
    assert (guided.ess / 100 > 1.5 * random_walk.ess / 600).all()  # a step of it is worth more


def test_a_proposal_of_one_s_own_samples_whole_numbers():
    def near(x, source):
        return x + torch.randint(0, 2, x.shape, generator=source) * 2 - 1

    chains = metropolis(
        lambda x: -x[:, 0].abs().double() * 0.5, torch.zeros(300, 1), propose=near, steps=400,
        burn_in=50, random_state=0,
    )  # fmt: skip
    k = torch.arange(-30, 31).double()
    p = (-k.abs() * 0.5).softmax(dim=0)
    assert float((chains.flat == 0).double().mean()) == pytest.approx(float(p[30]), abs=0.01)


def test_thinning_burn_in_and_seeds():
    def count(x, source):
        return x + 1

    chains = block_gibbs([count], torch.zeros(1, 1), steps=6, burn_in=3, thin=2)
    assert chains.draws.flatten().tolist() == [5, 7, 9]
    assert "the first 3 steps left out, then one of 2 kept" in repr(chains)
    start = torch.zeros(5, 4, dtype=torch.long)
    one, same, other = (
        gibbs(log_conditional, start, steps=5, random_state=s).draws for s in (1, 1, 2)
    )
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert (start == 0).all()
    kept = gibbs(log_conditional, start, steps=5, random_state=1, observe=lambda x: x.sum(dim=1))
    assert torch.equal(kept.draws, one.sum(dim=2))


def test_r_hat_sees_chains_that_do_not_mix():
    """Two wells that no random step crosses: each chain is calm, together they disagree."""

    def log_density(x):
        return -8 * (x[:, 0].square() - 4).square()

    start = torch.tensor([[2.0], [-2.0]]).repeat(4, 1)
    chains = metropolis(log_density, start, scale=0.1, steps=500, random_state=0)
    assert float(chains.r_hat[0]) > 3
    alone = split_r_hat(chains.draws[:, ::2, 0])
    assert float(alone) < 1.2
    drift = torch.arange(100.0)[:, None] + torch.randn(100, 3)
    assert float(split_r_hat(drift)) > 1.5  # all agree, but move
    assert float(split_r_hat(torch.ones(10, 2))) == 1
    assert float(split_r_hat(torch.tensor([1.0, 2.0]).expand(10, 2))) == float("inf")


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_the_effective_size_of_an_autoregression(rho):
    g = torch.Generator().manual_seed(0)
    x = torch.zeros(4000, 8, dtype=torch.float64)
    for t in range(1, 4000):
        noise = torch.randn(8, generator=g, dtype=torch.float64)
        x[t] = rho * x[t - 1] + (1 - rho**2) ** 0.5 * noise
    assert float(effective_sample_size(x)) == pytest.approx(
        32_000 * (1 - rho) / (1 + rho), rel=0.15
    )


def test_the_checkerboard_keeps_the_law_of_the_lattice():
    """2 x 4 torus: 256 states, each pair of neighbours as often as the torus joins it."""
    lattice = IsingLattice(2, 4, coupling=0.3, field=0.1)
    spins = torch.tensor(list(itertools.product((-1, 1), repeat=8))).view(-1, 2, 4)
    bonds = (spins * (spins.roll(1, 1) + spins.roll(1, 2))).sum(dim=(1, 2))
    p = (0.3 * bonds + 0.1 * spins.sum(dim=(1, 2))).double().softmax(dim=0)
    state = lattice.start(chains=40_000, random_state=0)
    grids = lattice.grid(lattice.sweep(state, 25, random_state=1))
    bits = (grids.flatten(1) > 0).long() @ (2 ** torch.arange(7, -1, -1))
    found = torch.bincount(bits, minlength=256).double() / len(bits)
    assert (found - p).abs().sum() / 2 < 0.035
    assert float((found - p).abs().max()) < 0.005
    assert float(lattice.magnetisation(state).mean()) == pytest.approx(
        float(lattice.grid(state).double().mean()), abs=1e-6
    )


def test_a_hot_lattice_is_disordered_and_a_cold_one_is_not():
    cold, hot = (IsingLattice(32, 32, coupling=c) for c in (0.8, 0.1))
    start = torch.ones_like(cold.start(chains=4))
    assert float(cold.magnetisation(cold.sweep(start, 50, random_state=0)).min()) > 0.9
    assert float(hot.magnetisation(hot.sweep(start, 50, random_state=0)).abs().max()) < 0.2


def test_bad_settings_are_refused():
    good = torch.zeros(2, 4, dtype=torch.long)
    with pytest.raises(InvalidData, match="variable 0 must be finite.*Scale the weights down"):
        gibbs(lambda x, i: torch.full((2, 2), torch.inf), good, steps=1)
    with pytest.raises(InvalidData, match="variable 3 must be finite"):
        gibbs(lambda x, i: torch.zeros(2, 2) / (i < 3), good, steps=1)
    with pytest.raises(ShapeMismatch, match=r"must have shape \(chains, variables\)"):
        gibbs(log_conditional, torch.zeros(4), steps=1)
    with pytest.raises(InvalidParameter, match="`thin` must be a whole number of at least 1"):
        gibbs(log_conditional, good, steps=1, thin=0)
    with pytest.raises(InvalidParameter, match="`steps` must be a whole number of at least 5"):
        gibbs(log_conditional, good, steps=4, thin=5)
    with pytest.raises(InvalidParameter, match="`updates` must hold at least one function"):
        block_gibbs([], good, steps=1)
    with pytest.raises(InvalidData, match="log p is -inf at chain 1"):
        metropolis(lambda x: x[:, 0].log(), torch.tensor([[1.0], [0.0]]), steps=1)
    with pytest.raises(InvalidParameter, match="`scale` must be a number above 0"):
        metropolis(lambda x: x[:, 0], torch.ones(1, 1), steps=1, scale=0)
    with pytest.raises(ShapeMismatch, match="at least 4 steps"):
        split_r_hat(torch.zeros(3, 2))
    with pytest.raises(InvalidParameter, match="must be even; got 3 and 4"):
        IsingLattice(3, 4, coupling=1.0)
