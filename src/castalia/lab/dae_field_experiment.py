"""A denoising autoencoder's step r(x) - x is the score of the noisy data, times sigma^2."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from castalia.evaluate import ScoreField
from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.models.generative import DenoisingAutoencoder
from castalia.train import Training
from castalia.utils.figure_style import COLOURS, MUTED

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["run"]

NOISE = 0.5  # of the Gaussian example, in deviations


def run(*, quick: bool = False) -> Outcome:
    """Draw the step on a line for Gaussian data, and the field around a spiral."""
    random = np.random.default_rng(0)
    rows = 1500 if quick else 6000
    training = Training(validation=0, schedule="cosine", average="ema")
    line = DenoisingAutoencoder(
        noise=NOISE, hidden=(32,), lr=5e-3, epochs=15 if quick else 40, training=training,
        random_state=0,
    )  # fmt: skip
    X = random.normal(size=(rows, 1))
    line.fit(X)
    figure, axes = panels(2, (9.5, 4.4))
    slope = _line(axes[0], line, float(X.std()))
    S = _spiral(rows, random)
    field = DenoisingAutoencoder(
        noise=0.12, hidden=(64, 64), code=32, lr=3e-3, epochs=20 if quick else 80, batch_size=64,
        training=training, random_state=0,
    ).fit(S)  # fmt: skip
    shown = ScoreField.from_estimator(field, S, side=22)
    shown.plot(axes[1])
    axes[1].set(title="steps r(x) − x around a spiral")
    nearer = _gap(S, shown.points) - _gap(S, shown.points + shown.arrows)
    near = _gap(S, shown.points) < 0.5
    exact = -(NOISE**2) / (1 + NOISE**2)
    numbers = {
        "slope": slope,
        "exact slope": exact,
        "share of steps that lead nearer": float((nearer[near] > 0).mean()),
    }
    said = (
        f"For Gaussian data the step has the slope {slope:.3f}, where −σ²/(s² + σ²) is "
        f"{exact:.3f}; around the spiral {100 * numbers['share of steps that lead nearer']:.0f} % "
        "of the steps lead nearer to it."
    )
    return Outcome(figure, numbers, said)


def _line(ax: Axes, model: DenoisingAutoencoder, spread: float) -> float:
    """Draw r(x) - x over x, and return its slope."""
    at = np.linspace(-2, 2, 81)
    step = np.asarray(model.reconstruct(at[:, None]))[:, 0] - at
    exact = -(NOISE**2) / (1 + NOISE**2)
    ax.plot(at, exact * at, color=MUTED, ls="--", label="σ² ∇ log p, exact")
    ax.plot(at, step, color=COLOURS[0], label="r(x) − x")
    ax.set(title=f"Gaussian data, noise of {NOISE} deviations", xlabel="x")
    ax.legend(frameon=False, fontsize=8)
    inner = np.abs(at) < 1.5 * spread
    return float(np.polyfit(at[inner], step[inner], 1)[0])


def _spiral(rows: int, random: np.random.Generator) -> np.ndarray:
    turn = np.sqrt(random.uniform(0.02, 1, rows)) * 2.5 * np.pi
    points = np.column_stack([turn * np.cos(turn), turn * np.sin(turn)]) / 3
    return points / points.std(axis=0) + 0.02 * random.normal(size=(rows, 2))


def _gap(data: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Distance of each point to the nearest row."""
    return np.sqrt(np.square(points[:, None] - data[None, :1500]).sum(axis=2).min(axis=1))
