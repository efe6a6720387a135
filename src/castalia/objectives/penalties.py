"""Norm penalties on weights; biases and normalisation scales are exempt.

Omega(w) = alpha/2 sum w^2 (L2) or alpha sum |w| (L1); ``half=False`` drops the factor 1/2 of L2, as
some texts do.
"""

import torch
from torch import Tensor, nn

from castalia.objectives.base import Penalty

__all__ = ["L1", "L2"]


def weights(net: nn.Module) -> list[Tensor]:
    """Return the trainable weight matrices: parameters with two or more dimensions."""
    return [p for p in net.parameters() if p.requires_grad and p.ndim >= 2]


class L2(Penalty):
    """alpha/2 times the sum of squared weights; its gradient is alpha w.

    Examples
    --------
    >>> float(L2(0.1).value(nn.Linear(1, 1)).detach()) >= 0
    True
    """

    name = "l2"

    def __init__(self, alpha: float, *, half: bool = True) -> None:
        self.alpha, self.half = alpha, half

    def value(self, net: nn.Module) -> Tensor:
        """Return alpha/2 sum w^2 (alpha sum w^2 with ``half=False``)."""
        factor = self.alpha / 2 if self.half else self.alpha
        return factor * torch.stack([w.square().sum() for w in weights(net)]).sum()


class L1(Penalty):
    """Alpha times the sum of absolute weights; its subgradient is alpha sign(w)."""

    name = "l1"

    def __init__(self, alpha: float) -> None:
        self.alpha = alpha

    def value(self, net: nn.Module) -> Tensor:
        """Return alpha sum |w|."""
        return self.alpha * torch.stack([w.abs().sum() for w in weights(net)]).sum()
