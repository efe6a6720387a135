"""Greedy pre-training: one layer at a time learns to rebuild what the layer below gives it.

Layer l minimises 1/2 ||d_l(e_l(h + noise)) - h||^2, h = e_{l-1}(... e_1(x)), the layers below as
they are.
Reference: 2007, Bengio, Lamblin, Popovici, Larochelle, Greedy layer-wise training of deep networks,
NIPS 19.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from castalia.objectives.objective import Objective, weighted_mean
from castalia.objectives.reconstruction import corrupted
from castalia.protocols import Batch, Phase

__all__ = ["LayerReconstruction"]


class LayerReconstruction(Objective):
    """The loss of one layer of a network with ``below(x, level)``, ``encoders`` and ``decoders``.

    Parameters
    ----------
    level
        Which layer, from 0.
    noise
        Deviation of the noise on what the layer is given; 0: none.
    """

    def __init__(self, level: int, noise: float = 0.0) -> None:
        self.level, self.noise = level, noise

    def phases(self, net: Any) -> list[Phase]:
        """One phase over the parameters of this layer and of its decoder."""
        pair = nn.ModuleList([net.encoders[self.level], net.decoders[self.level]])
        return [Phase("train", list(pair.parameters()))]

    def terms(self, net: Any, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the loss."""
        with torch.no_grad():
            h = net.below(batch.x, self.level)  # (B, D_l)
        given = corrupted(h, self.noise, "gaussian", h.shape[1]) if self.noise else h
        back = net.decoders[self.level](net.encoders[self.level](given))
        losses = (back - h).square().sum(dim=1) / 2
        return {"loss": weighted_mean(losses, batch.weight)}
