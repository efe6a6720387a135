"""The two-dimensional code of a variational autoencoder of digits, and what it decodes to."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm
from sklearn.neighbors import KNeighborsClassifier

from castalia.lab.digits import digits
from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.lab.image_tiles import draw_tiles
from castalia.models.generative import VariationalAutoencoder
from castalia.train import Training
from castalia.utils.figure_style import COLOURS, MUTED

__all__ = ["run"]

SIDE = 12  # decoded digits along each edge


def run(*, quick: bool = False) -> Outcome:
    """Encode digits into two numbers, and decode a grid of them."""
    found = digits(600 if quick else 5000, 400 if quick else 1500, small=quick)
    side = found.side
    X, held = (rows.reshape(-1, side, side) for rows in (found.x, found.x_test))
    training = Training(validation=0, schedule="cosine")
    model = VariationalAutoencoder(
        code=2, hidden=(64,) if quick else (256,), width=0, likelihood="bernoulli", lr=2e-3,
        epochs=25 if quick else 30, training=training, random_state=0,
    ).fit(X)  # fmt: skip
    codes, known = model.transform(held), model.transform(X)
    figure, axes = panels(3, (12, 3.9))
    colours = [*COLOURS, "#444444", "#b8a000"]
    for digit in range(10):
        some = codes[found.y_test == digit]
        axes[0].plot(*some.T, "o", ms=2.5, mew=0, alpha=0.7, color=colours[digit], label=str(digit))
    axes[0].set(title="codes of digits it has not seen")
    axes[0].legend(frameon=False, fontsize=7, ncols=2, markerscale=2, handletextpad=0.1)
    place = norm.ppf(np.linspace(0.04, 0.96, SIDE))
    grid = np.stack(np.meshgrid(place, place[::-1]), axis=-1).reshape(-1, 2)
    draw_tiles(axes[1], model.inverse_transform(grid), SIDE, "decoded from a grid of codes")
    axes[2].plot(
        [h["reconstruction"] for h in model.history_], color=COLOURS[0], label="−E log p(x | z)"
    )
    axes[2].plot([h["kl"] for h in model.history_], color=COLOURS[1], label="KL(q ‖ p)")
    axes[2].axhline(0, color=MUTED, lw=0.8)
    axes[2].set(title="the two terms of the bound, nats", xlabel="epoch")
    axes[2].legend(frameon=False, fontsize=8)
    neighbours = KNeighborsClassifier(10).fit(known, found.y)
    numbers = {
        "share of digits known by two numbers": float(neighbours.score(codes, found.y_test)),
        "mean of codes": float(np.abs(codes.mean(axis=0)).max()),
        "deviation of codes": float(codes.std(axis=0).max()),
        "bound": float(-model.history_[-1]["loss"]),
    }
    share = 100 * numbers["share of digits known by two numbers"]
    said = f"By two numbers {share:.0f} % of unseen digits are known from their neighbours' labels."
    return Outcome(figure, numbers, said)
