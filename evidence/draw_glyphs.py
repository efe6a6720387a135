"""DRAW beside a one-step VAE on glyphs at random places, and what its windows' start is worth.

Images of 12 x 12 hold one of four glyphs at one of 81 places: log 324 = 5.78 nats at best. Both
have 16 latent units. ``narrow`` begins with filters of one pixel, a stride apart, as they come from
weights around 0: most pixels are neither read nor written.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from castalia.lab.draw_attention_experiment import glyphs
from castalia.models.generative import DRAW, VariationalAutoencoder
from castalia.nets.generative import DRAWNetwork
from castalia.train import Training
from evidence.kept_figures import Kept
from evidence.rows import print_table, spread

SEEDS = (0, 1, 2)
EPOCHS = (10, 40, 100)


class NarrowDRAW(DRAW):
    """Its windows begin with filters of one pixel."""

    def _network(self, spec: Any) -> DRAWNetwork:
        net: Any = super()._network(spec)
        with torch.no_grad():
            for head in (net.reading, net.writing):
                head.bias.zero_()
        return net


def run(quick: bool = False) -> None:
    """Print the bound on 500 test images after so many epochs."""
    kept, seeds = Kept("draw_glyphs"), SEEDS[:1] if quick else SEEDS
    rows = []
    for name in MAKERS:
        cells = []
        for epochs in (1,) if quick else EPOCHS:
            found = [
                kept.find(f"{name}, {epochs}, {s}", lambda n=name, e=epochs, s=s: bound(n, e, s))
                for s in seeds
            ]
            cells.append(spread([f["bound"] for f in found], 2))
        rows.append([name, *cells])
    best = f"{math.log(324):.2f}"
    columns = ["model", *(f"{n} epochs" for n in ((1,) if quick else EPOCHS))]
    print_table(f"Glyphs, bound in nats ({best} at best)", columns, rows)


def bound(name: str, epochs: int, seed: int) -> dict[str, float]:
    """Mean negative bound of test images."""
    model = MAKERS[name](epochs, seed).fit(glyphs(1000, seed))
    return {"bound": -float(np.mean(lower_bound(model, glyphs(500, 99))))}


def lower_bound(model: Any, X: np.ndarray) -> np.ndarray:
    """log p(x, z) - log q(z | x) of one draw, for each image."""
    if isinstance(model, DRAW):
        return model.score_samples(X)
    return model.log_likelihood(X, samples=1)[0]


def vae(epochs: int, seed: int) -> VariationalAutoencoder:
    """A dense one."""
    return VariationalAutoencoder(
        code=16, hidden=(128,), width=0, likelihood="bernoulli", lr=3e-3, epochs=epochs,
        training=Training(validation=0), random_state=seed,
    )  # fmt: skip


def draw(epochs: int, seed: int, kind: type[DRAW] = DRAW) -> DRAW:
    """Four steps of four units."""
    return kind(
        code=4, steps=4, hidden=64, window=4, lr=3e-3, epochs=epochs,
        training=Training(validation=0, clip=10.0), random_state=seed,
    )  # fmt: skip


MAKERS: dict[str, Any] = {
    "VariationalAutoencoder": vae,
    "DRAW": draw,
    "DRAW, windows that begin narrow": lambda epochs, seed: draw(epochs, seed, NarrowDRAW),
}
