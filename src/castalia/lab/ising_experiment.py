"""An Ising model cleans a binary image and fills in what is missing.

p(s | y) ~ exp(J sum_<ij> s_i s_j + h sum_i y_i s_i): neighbours tend to agree, and every pixel with
what was seen of it. Mean field raises a lower bound of the evidence with every half sweep. Without
an image, the same model has a transition: above J = ln(1 + sqrt 2) / 2 = 0.44 the spins of a large
lattice agree. Reference of the exact curve: 1952, Yang, Physical Review 85.
"""

from __future__ import annotations

import numpy as np
import torch

from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.models.probabilistic import restore_image
from castalia.sampling import IsingLattice
from castalia.utils.figure_style import COLOURS, INK, caption

__all__ = ["magnetisation", "onsager", "run", "shapes"]

FLIPPED, MISSING = 0.15, 0.6


def shapes(n: int = 96) -> np.ndarray:
    """Return a binary image: a ring, a bar and a wave, (n, n)."""
    y, x = np.indices((n, n)) / n
    radius = np.hypot(x - 0.36, y - 0.38)
    ring = (radius < 0.26) & (radius > 0.13)
    bar = (np.abs(x - 0.82) < 0.06) & (np.abs(y - 0.38) < 0.28)
    wave = np.abs(y - 0.84 - 0.05 * np.sin(6 * np.pi * x)) < 0.045
    return (ring | bar | wave).astype(float)


def magnetisation(couplings: np.ndarray, side: int, sweeps: int) -> np.ndarray:
    """Return the mean size of the magnetisation over lattices, for each coupling."""
    found = []
    for coupling in couplings:
        lattice = IsingLattice(side, side, coupling=float(coupling))
        up = torch.ones_like(lattice.start(chains=8, random_state=0))  # all agree, then heated
        state = lattice.sweep(up, sweeps, random_state=1)
        found.append(float(lattice.magnetisation(state).abs().mean()))
    return np.array(found)


def onsager(couplings: np.ndarray) -> np.ndarray:
    """Return the exact magnetisation of an endless lattice: (1 - sinh(2 J)^-4)^(1/8), or 0."""
    return np.maximum(1 - np.sinh(2 * couplings) ** -4.0, 0.0) ** 0.125


def run(*, quick: bool = False) -> Outcome:
    """Restore a noisy image and one with gaps, and heat a lattice."""
    random, clean = np.random.default_rng(0), shapes(48 if quick else 96)
    noisy = np.where(random.random(clean.shape) < FLIPPED, 1 - clean, clean)
    holed = np.where(random.random(clean.shape) < MISSING, np.nan, clean)
    restored = restore_image(noisy, noise=FLIPPED, coupling=0.9)
    filled = restore_image(holed, noise=0.01, coupling=0.9)
    couplings = np.linspace(0.2, 0.7, 6 if quick else 14)
    strength = magnetisation(couplings, 16 if quick else 64, 100 if quick else 400)
    figure, axes = panels(3, (9.6, 6.4), rows=2)
    shown = (noisy, restored.image, holed, filled.image)
    gap = np.isnan(holed)
    wrong = {
        "pixels flipped": float((noisy != clean).mean()),
        "wrong after denoising": float((restored.image != clean).mean()),
        "pixels missing": float(gap.mean()),
        "wrong among the filled": float((filled.image != clean)[gap].mean()),
        "bound gained": restored.bounds[-1] - restored.bounds[0],
        "largest fall of the bound": max(0.0, float(-np.diff(restored.bounds).min())),
        "magnetisation, J = 0.2": float(strength[0]),
        "magnetisation, J = 0.7": float(strength[-1]),
    }
    titles = (
        f"{100 * wrong['pixels flipped']:.0f} % of the pixels flipped",
        f"denoised: {100 * wrong['wrong after denoising']:.1f} % wrong",
        f"{100 * wrong['pixels missing']:.0f} % missing (grey)",
        f"filled in: {100 * wrong['wrong among the filled']:.1f} % of them wrong",
    )
    places = (axes[0], axes[1], axes[3], axes[4])
    for ax, image, title in zip(places, shown, titles, strict=True):
        ax.imshow(np.nan_to_num(image, nan=0.5), cmap="gray_r", vmin=0, vmax=1)
        ax.set(xticks=[], yticks=[])
        ax.set_title(title, fontsize=10, color=INK)
    axes[2].plot(restored.bounds, "o-", ms=3, color=COLOURS[0])
    axes[2].set(xlabel="half sweep", ylabel="lower bound of the log evidence")
    axes[5].plot(couplings, strength, "o", ms=4, color=COLOURS[1], label="sampled")
    fine = np.linspace(0.2, 0.7, 400)
    axes[5].plot(fine, onsager(fine), color=INK, lw=1, label="endless lattice, exact")
    axes[5].set(xlabel="coupling J", ylabel="magnetisation", ylim=(0, 1.05))
    caption(axes[5], across=2)
    said = (
        f"Of {100 * wrong['pixels flipped']:.0f} % wrong pixels "
        f"{100 * wrong['wrong after denoising']:.1f} % are left."
    )
    return Outcome(figure, wrong, said)
