"""Where Baum–Welch begins: clusters of the observations, and moves that mostly stay."""

from __future__ import annotations

import warnings

import numpy as np
import torch
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from castalia.models.sequence.hidden_markov_em import ChainModel
from castalia.models.sequence.hidden_markov_emissions import Discrete, Emission, Gaussian, Mixture

__all__ = ["first_model"]

SAMPLE = 5_000  # rows that are clustered


def first_model(
    rows: np.ndarray, states: int, kind: str, *, full: bool, components: int, seed: int
) -> ChainModel:
    """Draw a model to begin with.

    Parameters
    ----------
    rows
        Complete observations, (R, D); of symbols their codes, (R, 1).
    states
        Number of states.
    kind
        ``"gaussian"``, ``"mixture"`` or ``"discrete"``.
    full
        Whether channels are correlated.
    components
        Components of each state's mixture.
    seed
        Another one gives another beginning.
    """
    random = np.random.default_rng(seed)
    stays = np.eye(states) + random.dirichlet(np.ones(states), states)
    move = torch.from_numpy(stays / stays.sum(axis=1, keepdims=True)).clamp_min(1e-3)
    start = torch.full((states,), 1 / states, dtype=torch.float64)
    emission: Emission
    if kind == "discrete":
        emission = _symbols(rows, states, random)
    elif kind == "gaussian":
        emission = _normal(_centres(rows, states, random), rows, full)
    else:
        emission = _mixtures(rows, states, components, full, random)
    return ChainModel(start, move / move.sum(dim=1, keepdim=True), emission)


def _symbols(rows: np.ndarray, states: int, random: np.random.Generator) -> Discrete:
    """Return the frequencies of the symbols, disturbed in each state."""
    share = np.bincount(rows[:, 0].astype(int)) / len(rows)
    table = share * random.gamma(1.0, size=(states, len(share)))
    return Discrete(torch.from_numpy(table / table.sum(axis=1, keepdims=True)))


def _centres(rows: np.ndarray, k: int, random: np.random.Generator) -> np.ndarray:
    """Return the centres of k clusters of a sample."""
    sample = rows if len(rows) <= SAMPLE else rows[random.choice(len(rows), SAMPLE, replace=False)]
    seed = int(random.integers(2**31))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return (
            KMeans(min(k, len(sample)), n_init=1, max_iter=50, random_state=seed)
            .fit(sample)
            .cluster_centers_
        )


def _normal(centres: np.ndarray, rows: np.ndarray, full: bool) -> Gaussian:
    """Return normal distributions about the centres, each as wide as all rows."""
    k, d = centres.shape
    spread = np.maximum(rows.var(axis=0), 1e-12 * np.square(rows).mean(axis=0) + 1e-300)
    wide = np.diag(spread) if full else spread
    covariances = torch.from_numpy(np.broadcast_to(wide, (k, *wide.shape)).copy())
    return Gaussian(torch.from_numpy(centres.astype(np.float64)), covariances)


def _mixtures(
    rows: np.ndarray, states: int, components: int, full: bool, random: np.random.Generator
) -> Mixture:
    """Return mixtures about the centres of clusters within clusters."""
    centres = _centres(rows, states, random)
    nearest = np.square(rows[:, None] - centres).sum(axis=2).argmin(axis=1)
    inner = []
    for state in range(states):
        mine = rows[nearest == state]
        found = _centres(mine if len(mine) else rows, components, random)
        lacking = components - len(found)
        noise = random.normal(size=(lacking, rows.shape[1])) * rows.std(axis=0)
        inner.append(np.vstack([found, centres[state] + noise]))
    weights = torch.full((states, components), 1 / components, dtype=torch.float64)
    return Mixture(weights, _normal(np.concatenate(inner), rows, full))
