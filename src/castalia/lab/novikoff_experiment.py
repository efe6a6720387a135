"""Novikoff's bound: from zero weights, at most R^2 / gamma^2 corrections.

R is the largest norm of (x, 1), gamma the best margin of unit weights. The proof starts at w = 0:
with large random starting weights the same rule can need more.
"""

from __future__ import annotations

import numpy as np

from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.models.linear import Perceptron
from castalia.utils.figure_style import COLOURS, INK, caption

__all__ = ["run", "separable"]


def separable(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows that some hyperplane separates, with a gap of random width."""
    features = int(rng.integers(2, 8))
    x = rng.normal(size=(int(rng.integers(20, 200)), features))
    w = rng.normal(size=features)
    away = x @ (w / np.linalg.norm(w)) + 0.3 * rng.normal()
    sign = np.where(away >= 0, 1.0, -1.0)
    sign[0] = -sign[1]  # both classes are there, however the draw fell
    gap = 10 ** rng.uniform(-1.5, 0.3)
    pushed = sign * np.maximum(np.abs(away), gap) - away
    return x + pushed[:, None] * (w / np.linalg.norm(w)), sign


def run(*, quick: bool = False) -> Outcome:
    """Count corrections on a hundred separable sets, from zero and from large random weights."""
    rng = np.random.default_rng(0)
    bound, zero, far = [], [], []
    for _ in range(30 if quick else 100):
        x, y = separable(rng)
        model = Perceptron(margin="best", epochs=100_000, patience=None).fit(x, y)
        bound.append(model.radius_**2 / model.margin_[0] ** 2)
        zero.append(model.mistakes_[0])
        thrown = Perceptron(init=50.0, epochs=100_000, patience=None, random_state=0).fit(x, y)
        far.append(thrown.mistakes_[0])
    ratio, thrown_ratio = np.array(zero) / bound, np.array(far) / bound
    figure, (ax,) = panels(1, (6.4, 4))
    ends = [min(bound) * 0.6, max(bound) * 1.6]
    ax.fill_between(ends, ends, 1e6, color=COLOURS[4], alpha=0.08, lw=0, label="beyond the bound")
    ax.plot(ends, ends, color=INK, lw=1)
    ax.scatter(bound, zero, s=22, color=COLOURS[0], lw=0, label="from zero weights")
    ax.scatter(bound, far, s=22, color=COLOURS[1], marker="x", lw=1, label="from large random ones")
    top = 2 * max(*far, *bound)
    ax.set(xscale="log", yscale="log", xlim=ends, ylim=(0.8, top))
    ax.set(xlabel="Novikoff's bound R²/γ²", ylabel="corrections counted")
    caption(ax)
    numbers = {
        "sets": float(len(bound)),
        "beyond the bound": float((ratio > 1).sum()),
        "largest share of the bound": float(ratio.max()),
        "beyond it from random weights": float((thrown_ratio > 1).sum()),
    }
    said = (
        f"None of {len(bound)} sets needs more than its bound from zero weights (at most "
        f"{ratio.max():.0%} of it); {(thrown_ratio > 1).sum()} do from large random ones."
    )
    return Outcome(figure, numbers, said)
