"""One vector from the layers of a network, by learnt shares.

y = gamma sum_j softmax(s)_j h_j, with one number s_j a layer and one gamma; shares are equal and
gamma is 1 at the start.
Shapes: L layers, any others.
Reference: 2018, Peters et al., Deep contextualized word representations, arXiv 1802.05365, (1).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.errors import InvalidParameter, ShapeMismatch

__all__ = ["ScalarMix"]


class ScalarMix(nn.Module):
    """Weighted mean of layers, times a number.

    The layers may be frozen: then a task learns only which of them it needs, and how much of them.

    Parameters
    ----------
    layers
        How many are mixed, L.
    norm
        Whether each vector is first brought to mean 0 and variance 1, for layers of unlike scales.

    Attributes
    ----------
    scores
        s, (L,).
    gamma
        Factor of the whole.

    Examples
    --------
    >>> mix = ScalarMix(2)
    >>> mix([torch.zeros(3), torch.ones(3)])
    tensor([0.5000, 0.5000, 0.5000], grad_fn=<MulBackward0>)
    """

    def __init__(self, layers: int, *, norm: bool = False) -> None:
        super().__init__()
        if layers < 1:
            raise InvalidParameter(
                f"ScalarMix: `layers` must be a whole number from 1; got {layers}."
            )
        self.norm = norm
        self.scores = nn.Parameter(torch.zeros(layers))
        self.gamma = nn.Parameter(torch.ones(()))

    @property
    def shares(self) -> Tensor:
        """What part each layer has, softmax(s), (L,)."""
        return self.scores.softmax(dim=0)

    def forward(self, layers: Sequence[Tensor]) -> Tensor:
        """Return the mix, of the shape of one layer.

        Parameters
        ----------
        layers
            L tensors of one shape; vectors lie along the last axis.
        """
        if len(layers) != len(self.scores):
            raise ShapeMismatch(
                f"ScalarMix: `layers` must hold {len(self.scores)} layers; got {len(layers)}."
            )
        if self.norm:
            layers = [F.layer_norm(h, h.shape[-1:]) for h in layers]
        pairs = zip(self.shares, layers, strict=True)
        return self.gamma * torch.stack([share * h for share, h in pairs]).sum(dim=0)
