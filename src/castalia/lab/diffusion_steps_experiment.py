"""A diffusion model takes noise out step by step; few steps do what many do, less finely."""

from __future__ import annotations

import torch
from sklearn.datasets import make_moons

from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.models.generative import DiffusionModel
from castalia.objectives import energy_distance
from castalia.utils.figure_style import COLOURS, INK

__all__ = ["run"]

STEPS = (1, 2, 5, 10, 20, 50)


def run(*, quick: bool = False) -> Outcome:
    """Learn two moons; show draws on their way, and how near draws of few steps come."""
    X = make_moons(600 if quick else 2000, noise=0.06, random_state=0)[0]
    model = DiffusionModel(
        hidden=64, depth=3, lr=3e-3, epochs=60 if quick else 200, batch_size=128, random_state=0
    ).fit(X)
    figure, axes = panels(6, (15, 2.9))
    seen = model.stages(256, stages=5)
    for i, (ax, rows) in enumerate(zip(axes, seen, strict=False)):
        ax.plot(*X[:400].T, "o", ms=2, mew=0, color=INK, alpha=0.3)
        ax.plot(*rows.T, "o", ms=2.2, mew=0, color=COLOURS[0], alpha=0.8)
        ax.set(title=f"{i * 50 // 4} of 50 steps", xlim=(-2.6, 3.6), ylim=(-2.2, 2.6))
    real = torch.from_numpy(X)
    gaps = []
    for steps in STEPS:
        drawn = torch.from_numpy(model.set_params(sample_steps=steps).sample(600)).double()
        gaps.append(float(energy_distance(real, drawn)))
    axes[5].loglog(STEPS, gaps, "o-", color=COLOURS[0], ms=4)
    axes[5].set(title="energy distance to data", xlabel="steps of a draw")
    numbers = {
        "noise": float(energy_distance(real, torch.from_numpy(seen[0]).double())),
        "distance after 1 step": gaps[0],
        "distance after 50 steps": gaps[-1],
    }
    said = (
        f"Draws of 50 steps are {gaps[-1]:.4f} from the data (energy distance), those of one step "
        f"{gaps[0]:.2f}, noise {numbers['noise']:.2f}."
    )
    return Outcome(figure, numbers, said)
