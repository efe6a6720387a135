"""A restricted Boltzmann machine learns strokes, and draws digits of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from castalia.lab.digits import digits
from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.lab.image_tiles import draw_tiles
from castalia.models.generative import RestrictedBoltzmannMachine

__all__ = ["run"]


def run(*, quick: bool = False) -> Outcome:
    """Train a machine on digits and draw rows, filters and samples."""
    found = digits(600 if quick else 8000, 200, small=quick)
    X = (found.x > 0.5).astype(np.float32)
    held = (found.x_test > 0.5).astype(np.float32)
    settings: dict[str, Any] = {"hidden": 32 if quick else 128, "batch_size": 20, "random_state": 0}
    model = RestrictedBoltzmannMachine(epochs=15 if quick else 25, lr=0.1, **settings).fit(X)
    untrained = RestrictedBoltzmannMachine(epochs=1, lr=1e-9, **settings).fit(X)
    drawn = model.sample(25, steps=50 if quick else 1000)
    figure, axes = panels(3, (9, 3.2))
    shape = (-1, found.side, found.side)
    draw_tiles(axes[0], X[:25].reshape(shape), 5, "digits")
    weights = model.weights_.T[:25].reshape(shape)
    draw_tiles(axes[1], weights, 5, "weights of 25 hidden units", both_signs=True)
    draw_tiles(axes[2], np.asarray(drawn[:25]).reshape(shape), 5, "samples")
    first, last = model.history_[0]["reconstruction"], model.history_[-1]["reconstruction"]
    numbers = {
        "pseudo-likelihood": float(model.pseudo_likelihood(held).mean()),
        "pseudo-likelihood of independent pixels": float(untrained.pseudo_likelihood(held).mean()),
        "first reconstruction error": float(first),
        "last reconstruction error": float(last),
        "ink of digits": float(X.mean()),
        "ink of samples": float(drawn.mean()),
    }
    said = (
        f"The pseudo-likelihood of held-out digits rises from "
        f"{numbers['pseudo-likelihood of independent pixels']:.0f} with independent pixels to "
        f"{numbers['pseudo-likelihood']:.0f}."
    )
    return Outcome(figure, numbers, said)
