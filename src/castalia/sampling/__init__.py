"""Sampling: Monte Carlo, importance weights, Markov chains and their diagnostics."""

from castalia.sampling.annealed_importance import AnnealedEstimate, annealed_importance
from castalia.sampling.chain_diagnostics import effective_sample_size, split_r_hat
from castalia.sampling.gibbs_chains import block_gibbs, gibbs
from castalia.sampling.importance import ImportanceEstimate, importance_sampling
from castalia.sampling.ising_lattice import IsingLattice
from castalia.sampling.las_vegas_selection import Selection, las_vegas
from castalia.sampling.markov_chain import MarkovChain
from castalia.sampling.metropolis_chains import hamiltonian, metropolis
from castalia.sampling.monte_carlo_mean import Estimate, monte_carlo
from castalia.sampling.sampled_chains import Chains

__all__ = [
    "AnnealedEstimate",
    "Chains",
    "Estimate",
    "ImportanceEstimate",
    "IsingLattice",
    "MarkovChain",
    "Selection",
    "annealed_importance",
    "block_gibbs",
    "effective_sample_size",
    "gibbs",
    "hamiltonian",
    "importance_sampling",
    "las_vegas",
    "metropolis",
    "monte_carlo",
    "split_r_hat",
]
