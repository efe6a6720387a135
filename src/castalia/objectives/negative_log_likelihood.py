"""Maximum likelihood of networks that give log p(x): flows."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from castalia.objectives.objective import Objective, weighted_mean
from castalia.protocols import Batch

__all__ = ["NegativeLogLikelihood"]


class NegativeLogLikelihood(Objective):
    """-log p(x), a mean over rows, of a network with ``log_prob(x)``.

    Parameters
    ----------
    whole
        How many trailing columns hold whole numbers; uniform noise between 0 and 1 is added, which
        makes densities of them probabilities (dequantisation).

    Examples
    --------
    >>> from castalia.nets.generative import CouplingFlow
    >>> flow = CouplingFlow(1, depth=1, hidden=())
    >>> NegativeLogLikelihood().terms(flow, Batch(torch.zeros(2, 1)), "train")["loss"] > 0
    tensor(True)
    """

    def __init__(self, whole: int = 0) -> None:
        self.whole = whole

    def terms(self, net: Any, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the loss."""
        x = batch.x
        if self.whole:
            noise = torch.zeros_like(x)
            noise[:, -self.whole :].uniform_()
            x = x + noise
        return {"loss": weighted_mean(-net.log_prob(x), batch.weight)}
