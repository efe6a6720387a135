"""A generator and a discriminator take turns: samples, and what the discriminator still sees."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.models.generative import GenerativeAdversarialNetwork
from castalia.objectives import energy_distance
from castalia.train import Callback
from castalia.train.state import TrainState
from castalia.utils.figure_style import COLOURS, INK

__all__ = ["run"]

MODES = 4  # blobs on a circle


class Draws(Callback):
    """Keeps draws of the generator after some epochs."""

    def __init__(self, epochs: tuple[int, ...]) -> None:
        self.epochs = epochs
        self.drawn: dict[int, np.ndarray] = {}

    def on_epoch_end(self, state: TrainState) -> None:
        """Draw by the same noise each time."""
        epoch = len(state.history)
        if epoch not in self.epochs:
            return
        generator: Any = state.net.generator
        noise = torch.randn(500, generator.noise, generator=torch.Generator().manual_seed(0))
        with torch.no_grad():
            self.drawn[epoch] = generator(noise).numpy()


def run(*, quick: bool = False) -> Outcome:
    """Let a generator learn four blobs, and watch it."""
    random = np.random.default_rng(0)
    n, epochs = (800, 60) if quick else (1200, 120)
    angle = 2 * np.pi * random.integers(MODES, size=n) / MODES
    X = np.column_stack([np.cos(angle), np.sin(angle)]) + 0.12 * random.normal(size=(n, 2))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    watch = Draws((1, epochs // 10, epochs // 3, epochs))
    model = GenerativeAdversarialNetwork(
        noise=4, hidden=(64, 64), lr=1e-3, epochs=epochs, batch_size=64, random_state=0
    )
    model.training = model.usual_training.__class__(
        **{**model.usual_training.get_params(), "callbacks": (watch,), "device": "cpu"}
    )
    model.fit(X)
    figure, axes = panels(5, (14, 3.1))
    for ax, (epoch, drawn) in zip(axes, watch.drawn.items(), strict=False):
        ax.plot(*X[:500].T, "o", ms=2, mew=0, color=INK, alpha=0.35)
        ax.plot(*drawn.T, "o", ms=2, mew=0, color=COLOURS[1], alpha=0.6)
        ax.set(title=f"after epoch {epoch}", xlim=(-2.6, 2.6), ylim=(-2.6, 2.6))
    for name, colour in (("real", COLOURS[0]), ("fake", COLOURS[1])):
        axes[4].plot([h[name] for h in model.history_], color=colour, label=f"D on {name}", lw=1)
    axes[4].axhline(0.5, color=INK, ls="--", lw=0.8)
    axes[4].set(title="what the discriminator says", xlabel="epoch", ylim=(0, 1))
    axes[4].legend(frameon=False, fontsize=8)
    rows = torch.from_numpy(X[:500])
    gaps = [
        float(energy_distance(rows, torch.from_numpy(d).double())) for d in watch.drawn.values()
    ]
    drawn = model.sample(1000)
    turn = np.round(MODES * np.arctan2(drawn[:, 1], drawn[:, 0]) / (2 * np.pi)).astype(int) % MODES
    shares = np.bincount(turn, minlength=MODES) / len(drawn)
    numbers = {
        "first distance": gaps[0],
        "last distance": gaps[-1],
        "smallest share of a blob": float(shares.min()),
        "D on fake at the end": float(model.history_[-1]["fake"]),
    }
    said = (
        f"The energy distance to the data falls from {gaps[0]:.2f} to {gaps[-1]:.3f}, each blob "
        f"gets {100 * shares.min():.0f} % of the draws at least, and the discriminator gives fakes "
        f"{numbers['D on fake at the end']:.2f}."
    )
    return Outcome(figure, numbers, said)
