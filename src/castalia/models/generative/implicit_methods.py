"""What generators without a density share: noise in, rows out, and a distance to data as score."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from castalia.models.generative.row_estimator import row_width
from castalia.models.generative.sample_methods import Lacks, Samples
from castalia.nets.generative import GeneratorNetwork, OneHotRows, decoder
from castalia.objectives import energy_distance
from castalia.protocols import Spec
from castalia.utils.row_noise import RowNoise

__all__ = ["Implicit", "generator_network", "one_hot_rows"]

MOST = 1000  # rows that are compared


def one_hot_rows(spec: Spec) -> OneHotRows | None:
    """Return how rows of a table become columns of numbers; None for images."""
    if spec.extra.get("size"):
        return None
    return OneHotRows(spec.extra["numbers"], len(spec.extra["missing"]), spec.categories)


def generator_network(est: Any, spec: Spec) -> GeneratorNetwork:
    """Return a generator by the fields ``noise``, ``hidden``, ``width`` and ``activation``."""
    rows = one_hot_rows(spec)
    body = decoder(
        est.noise + spec.outputs,
        row_width(spec) if rows is None else rows.width,
        size=tuple(spec.extra.get("size") or ()),
        hidden=est.hidden,
        width=est.width,
        activation=est.activation,
    )
    return GeneratorNetwork(body, rows, noise=est.noise, classes=spec.outputs)


class Implicit(Samples):
    """Draws by ``module_.generator``; no density."""

    grey = True
    score_samples = Lacks(
        "it draws rows and has no density. VariationalAutoencoder and NormalizingFlow have one."
    )
    transform = Lacks("it has no encoder. VariationalAutoencoder has one.")

    def _draw(self, noise: RowNoise, y: Tensor | None) -> Tensor:
        generator: Any = self.module_.generator  # type: ignore[attr-defined]
        parameter = next(generator.parameters())
        z = noise.normal(generator.noise).to(parameter)
        if generator.rows is None:
            return generator(z, y)
        chance = noise.uniform(generator.rows.width).to(parameter)
        return generator.rows.codes(generator(z, y, chance))

    @torch.inference_mode()
    def score(self, X: Any, y: Any = None) -> float:
        """Return minus the energy distance between samples and rows, encoded; at most 1,000."""
        rows = torch.cat(list(self._each(X, lambda x: x.flatten(1))))  # type: ignore[attr-defined]
        rows = rows[torch.linspace(0, len(rows) - 1, min(MOST, len(rows))).long()].double()
        labels = None
        if getattr(self, "conditional", False):
            labels = torch.arange(MOST) % len(self.classes_)  # type: ignore[attr-defined]
        drawn = []
        for i, noise in enumerate(RowNoise.blocks(MOST, 0)):
            part = None if labels is None else labels[256 * i : 256 * i + noise.rows]
            drawn.append(self._draw(noise, part).cpu().double())
        return -float(energy_distance(rows, torch.cat(drawn)))
