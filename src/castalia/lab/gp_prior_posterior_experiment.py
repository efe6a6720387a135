"""Functions before and after data: a Gaussian process, its error bars, and how its scale is chosen.

Draws of the prior are any smooth functions; five points leave those that pass by them. The marginal
likelihood prefers the length scale that explains the points without passing through noise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.models.kernel import RBF, Constant, GaussianProcessRegressor, White
from castalia.utils.figure_style import COLOURS, MUTED

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["run"]

GRID = np.linspace(0, 10, 200)[:, None]
SCALES = np.geomspace(0.1, 10, 30)


def data(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw noisy points of a wave."""
    random = np.random.default_rng(3)
    x = random.uniform(0, 10, (n, 1))
    return x, np.sin(x[:, 0]) + 0.2 * random.normal(size=n)


def run(*, quick: bool = False) -> Outcome:
    """Draw the prior, the posterior after few and many points, and the evidence of scales."""
    kernel = Constant(1.0) * RBF(1.3) + White(0.04)
    few, many = data(5), data(20 if quick else 40)
    figure, axes = panels(4, (12, 3.1))
    random = np.random.default_rng(0)
    prior = random.multivariate_normal(np.zeros(200), RBF(1.3)(GRID), 5, method="eigh")
    axes[0].fill_between(GRID[:, 0], -2, 2, color=MUTED, alpha=0.2, lw=0)
    for draw, colour in zip(prior, COLOURS, strict=False):
        axes[0].plot(GRID[:, 0], draw, lw=1, color=colour)
    axes[0].set(title="prior", ylim=(-3, 3))
    for ax, (x, y), title in ((axes[1], few, "five points"), (axes[2], many, "more points")):
        model = GaussianProcessRegressor(kernel=kernel, learn=False, normalize_y=False).fit(x, y)
        _draw(ax, model, x, y, title)
    learnt = GaussianProcessRegressor(
        kernel=kernel, normalize_y=False, random_state=0, restarts=0
    ).fit(*many)
    theta = learnt.kernel_.theta(1).numpy()
    evidence = []
    for scale in SCALES:
        theta[1] = np.log(scale)
        evidence.append(learnt.log_marginal_likelihood(theta))
    found = float(learnt.kernel_.left.right.length_scale)
    axes[3].semilogx(SCALES, evidence, color=COLOURS[0])
    axes[3].axvline(found, color=COLOURS[1], lw=1)
    axes[3].set(title="evidence", xlabel="length scale", ylabel="log p(y | X)")
    _, at_few = learnt.predict([[50.0]], return_std=True)
    numbers = {
        "learnt length scale": found,
        "learnt noise": float(learnt.kernel_.right.variance) ** 0.5,
        "deviation far from data": float(at_few[0]),
        "deviation at data": float(learnt.predict(many[0][:1], return_std=True)[1][0]),
        "evidence lost at a tenth of the scale": float(max(evidence) - evidence[0]),
    }
    said = (
        f"The evidence is highest at a length scale of {found:.2f} and noise of "
        f"{numbers['learnt noise']:.2f} (true: 0.20)."
    )
    return Outcome(figure, numbers, said)


def _draw(
    ax: Axes, model: GaussianProcessRegressor, x: np.ndarray, y: np.ndarray, title: str
) -> None:
    mean, std = model.predict(GRID, return_std=True)
    ax.fill_between(GRID[:, 0], mean - 2 * std, mean + 2 * std, color=COLOURS[0], alpha=0.2, lw=0)
    ax.plot(GRID[:, 0], mean, color=COLOURS[0])
    ax.plot(GRID[:, 0], np.sin(GRID[:, 0]), color=MUTED, lw=1, ls="--")
    ax.plot(x[:, 0], y, "o", color=COLOURS[1], ms=4)
    ax.set(title=title, ylim=(-3, 3))
