"""Importance sampling: the chance that a normal variable exceeds 3, by draws from elsewhere.

Plain draws hardly ever get there. A proposal moved to where p |f| is large gets there all the time;
one that is narrower than p has weights without bound.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import torch

from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.sampling import ImportanceEstimate, importance_sampling
from castalia.utils.figure_style import COLOURS, INK, MUTED, caption

__all__ = ["run"]

EDGE = 3.0
TRUTH = 0.5 * math.erfc(EDGE / math.sqrt(2))
PROPOSALS = {"p itself": (0.0, 1.0), "moved to 3": (3.0, 1.0), "wide": (0.0, 3.0)}


def log_normal(x: torch.Tensor, mean: float, std: float) -> torch.Tensor:
    """Return log N(x | mean, std^2)."""
    return -0.5 * ((x - mean) / std).square() - math.log(std * math.sqrt(2 * math.pi))


def drawn(n: int, source: torch.Generator, *, mean: float, std: float) -> torch.Tensor:
    """Draw normal numbers."""
    return mean + std * torch.randn(n, generator=source, dtype=torch.float64)


def estimate(name: str, n: int, seed: int) -> ImportanceEstimate:
    """Estimate the chance with a proposal."""
    mean, std = PROPOSALS[name]
    return importance_sampling(
        lambda x: (x > EDGE).double(),
        partial(log_normal, mean=0.0, std=1.0),
        partial(drawn, mean=mean, std=std),
        partial(log_normal, mean=mean, std=std),
        n,
        random_state=seed,
    )


def relative_error(name: str, n: int, repeats: int) -> float:
    """Return the root of the mean squared relative error over seeds."""
    found = [float(estimate(name, n, seed).value) / TRUTH - 1 for seed in range(repeats)]
    return float(np.sqrt(np.mean(np.square(found))))


def run(*, quick: bool = False) -> Outcome:
    """Compare the errors of three proposals over the number of draws."""
    repeats = 20 if quick else 100
    sizes = np.geomspace(100, 3000 if quick else 30_000, 6).astype(int)
    figure, (left, right) = panels(2, (9, 3.4))
    grid = torch.linspace(-4, 7, 400, dtype=torch.float64)
    p = log_normal(grid, 0.0, 1.0).exp()
    best = p * (grid > EDGE) / TRUTH
    left.fill_between(grid, p / p.max(), color=MUTED, alpha=0.3, lw=0, label="p")
    left.plot(grid, best / best.max(), color=INK, lw=1, label="best: p |f|")
    numbers: dict[str, float] = {"truth": TRUTH}
    for (name, (mean, std)), colour in zip(PROPOSALS.items(), COLOURS, strict=False):
        q = log_normal(grid, mean, std).exp()
        left.plot(grid, q / q.max(), color=colour, label=name)
        errors = [relative_error(name, n, repeats) for n in sizes.tolist()]
        right.loglog(sizes, errors, "o-", color=colour, ms=4, label=name)
        numbers[f"relative error, {name}"] = float(errors[-1])
    left.set(xlabel="x", ylabel="density, scaled", yticks=())
    right.set(xlabel="draws", ylabel="relative error")
    caption(left)
    caption(right)
    gain = (numbers["relative error, p itself"] / numbers["relative error, moved to 3"]) ** 2
    numbers["draws saved"] = float(gain)
    said = (
        f"Draws around 3 are worth {gain:.0f} plain ones each; the best proposal, p |f| / Z, would "
        "have no error, and its Z is the answer itself."
    )
    return Outcome(figure, numbers, said)
