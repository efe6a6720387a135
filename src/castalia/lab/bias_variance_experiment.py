"""Bias and variance over the penalty: a hundred data sets, one sinusoid.

Each set has 25 points of sin(2 pi x) + N(0, 0.3^2); each fit has 24 Gaussian bases of width 0.1 and
a constant, with ridge's penalty lambda. A large lambda makes all fits alike and wrong, a small one
each different and their mean right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from castalia.evaluate.displays import BiasVariance
from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.models.linear import BasisRegression
from castalia.utils.figure_style import COLOURS, INK, caption

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["decomposed", "run", "sample"]

LAMBDAS = {"13.5": np.exp(2.6), "0.73": np.exp(-0.31), "0.09": np.exp(-2.4)}  # as in the notes
SHOWN = 20  # fits drawn


def sample(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw a data set."""
    x = rng.uniform(0, 1, (25, 1))
    return x, np.sin(2 * np.pi * x[:, 0]) + 0.3 * rng.normal(size=25)


def decomposed(lambdas: np.ndarray) -> BiasVariance:
    """Fit every penalty to the same hundred sets, and compare with the truth on a grid."""
    grid = np.linspace(0, 1, 200)[:, None]
    return BiasVariance.from_sampler(
        BasisRegression(basis="gaussian", size=24, bandwidth=0.1),
        sample,
        grid,
        np.sin(2 * np.pi * grid[:, 0]),
        parameter="alpha",
        values=list(lambdas),
        repeats=100,
    )


def run(*, quick: bool = False) -> Outcome:
    """Draw the fits of three penalties, and the parts of the error over all."""
    few = decomposed(np.array(list(LAMBDAS.values())))
    curve = decomposed(np.exp(np.linspace(-5, 3, 4 if quick else 25)))
    figure, axes = panels(2, (8.5, 5.8), rows=2)
    for ax, name, fits in zip(axes, LAMBDAS, few.fits, strict=False):
        _draw(ax, fits, name)
    _parts(axes[3], curve)
    best = float(np.log(curve.values[int(curve.error.argmin())]))
    numbers = {
        **{f"bias², λ = {name}": float(b) for name, b in zip(LAMBDAS, few.bias, strict=True)},
        **{
            f"variance, λ = {name}": float(v) for name, v in zip(LAMBDAS, few.variance, strict=True)
        },
        "largest gap of the sum": float(np.abs(few.bias + few.variance - few.error).max()),
        "best ln λ": best,
    }
    said = (
        f"At λ = 13.5 bias² is {few.bias[0]:.4f} and variance {few.variance[0]:.4f}; at λ = 0.09 "
        f"they are {few.bias[2]:.4f} and {few.variance[2]:.4f}. The best ln λ is {best:.1f}."
    )
    return Outcome(figure, numbers, said)


def _draw(ax: Axes, fits: np.ndarray, name: str) -> None:
    grid = np.linspace(0, 1, fits.shape[1])
    for fit in fits[:SHOWN]:
        ax.plot(grid, fit, color=COLOURS[1], lw=0.6, alpha=0.5)
    ax.plot(grid, np.sin(2 * np.pi * grid), color=INK, lw=1.6, ls=(0, (4, 2)), label="truth")
    ax.plot(grid, fits.mean(axis=0), color=COLOURS[0], lw=2, label="mean of 100 fits")
    ax.set(xlabel="x", ylabel=f"λ = {name}", ylim=(-1.6, 1.6))
    caption(ax)


def _parts(ax: Axes, curve: BiasVariance) -> None:
    ln = np.log(np.asarray(curve.values, dtype=float))
    parts = ((curve.bias, "bias²"), (curve.variance, "variance"), (curve.error, "sum"))
    for (values, name), colour in zip(parts, (COLOURS[0], COLOURS[1], COLOURS[2]), strict=True):
        ax.plot(ln, values, color=colour, lw=1.8, label=name)
    ax.axvline(ln[curve.error.argmin()], color=INK, lw=0.9, ls=(0, (3, 3)))
    ax.set(xlabel="ln λ", ylabel="squared error", ylim=(0, 0.12))
    caption(ax)
