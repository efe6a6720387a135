"""Gibbs sampling mixes slowly where neighbours agree strongly.

A ring of six bits, log p~ = J times the number of neighbours that agree. Its 64 states are few
enough to write the transition matrix of a whole sweep down: the distance from the stationary law
falls as the second eigenvalue to the power of the sweeps. R-hat sees the same from samples alone.
"""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
import torch

from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.sampling import MarkovChain, gibbs, split_r_hat
from castalia.utils.figure_style import COLOURS, MUTED, caption

__all__ = ["run"]

BITS = 6
STATES = np.array(list(product((0, 1), repeat=BITS)))
COUPLINGS = (0.5, 1.5, 2.5)


def law(coupling: float) -> np.ndarray:
    """Return the probabilities of all states, (64,)."""
    p = np.exp(coupling * (np.roll(STATES, 1, axis=1) == STATES).sum(axis=1))
    return p / p.sum()


def resampled(p: np.ndarray, block: list[int]) -> np.ndarray:
    """Return the matrix of drawing some bits again given the others, columns summing to one."""
    others = [i for i in range(BITS) if i not in block]
    same = (STATES[:, None, others] == STATES[None][..., others]).all(axis=-1)
    joint = same * p[:, None]
    return joint / joint.sum(axis=0)


def sweep(p: np.ndarray, blocks: list[list[int]]) -> MarkovChain:
    """Return the chain whose step draws all blocks, one after another."""
    whole = np.eye(len(p))
    for block in blocks:
        whole = resampled(p, block) @ whole
    return MarkovChain(whole)


def log_conditional(coupling: float, x: torch.Tensor, i: int) -> torch.Tensor:
    """Return the log-probabilities of a bit given its two neighbours, (C, 2)."""
    near = x[:, [(i - 1) % BITS, (i + 1) % BITS]]
    return coupling * torch.stack([(near == 0).sum(1), (near == 1).sum(1)], dim=1).double()


def run(*, quick: bool = False) -> Outcome:
    """Compare couplings by exact distances, by traces and by R-hat; and blocks with bits."""
    steps, sweeps = (200 if quick else 1000), 40
    figure, (left, middle, right) = panels(3, (10, 3.3))
    numbers: dict[str, float] = {}
    start = torch.zeros(8, BITS, dtype=torch.long)
    start[4:] = 1
    for coupling, colour in zip(COUPLINGS, COLOURS, strict=False):
        p = law(coupling)
        chain = sweep(p, [[i] for i in range(BITS)])
        left.semilogy(chain.total_variation(sweeps), color=colour, label=f"J = {coupling}")
        chains = gibbs(
            partial(log_conditional, coupling), start, steps=steps,
            observe=lambda x: x.double().mean(dim=1), random_state=0,
        )  # fmt: skip
        middle.plot(chains.draws[:120, 0] + 1.3 * COUPLINGS.index(coupling), color=colour, lw=1)
        lengths = np.unique(np.geomspace(8, steps, 12).astype(int))
        right.semilogx(
            lengths, [float(split_r_hat(chains.draws[:n])) for n in lengths], "o-", color=colour,
            ms=3,
        )  # fmt: skip
        numbers |= {
            f"eigenvalue, J = {coupling}": chain.second_eigenvalue,
            f"mixing sweeps, J = {coupling}": float(chain.mixing_time(0.01)),
            f"R-hat, J = {coupling}": float(chains.r_hat),
        }
    pairs = sweep(law(COUPLINGS[-1]), [[0, 1, 2], [3, 4, 5]])
    numbers["mixing sweeps, blocks of three"] = float(pairs.mixing_time(0.01))
    left.semilogy(pairs.total_variation(sweeps), color=COLOURS[2], ls="--", label="blocks of 3")
    left.set(xlabel="sweeps", ylabel="total variation", ylim=(1e-6, 1.5))
    caption(left)
    middle.set(xlabel="sweeps", ylabel="share of ones, one chain", yticks=())
    right.axhline(1.01, color=MUTED, lw=1)
    right.set(xlabel="sweeps", ylabel="split R-hat of 8 chains")
    slow = numbers[f"mixing sweeps, J = {COUPLINGS[-1]}"]
    said = (
        f"At J = {COUPLINGS[-1]} a chain needs {slow:.0f} sweeps, at J = {COUPLINGS[0]} "
        f"{numbers[f'mixing sweeps, J = {COUPLINGS[0]}']:.0f}; drawing three bits at a time it "
        f"needs {numbers['mixing sweeps, blocks of three']:.0f}."
    )
    return Outcome(figure, numbers, said)
