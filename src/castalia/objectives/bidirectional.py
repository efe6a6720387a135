"""Predicting each token from those before it and from those after it.

l_b = (1 / n) sum_k -log p(x_k | x_1..k-1) - log p(x_k | x_k+1..n): both log-likelihoods are summed.
Shapes: B batch, T tokens, V vocabulary.
Reference: 2018, Peters et al., Deep contextualized word representations, arXiv 1802.05365, 3.1.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from castalia.objectives.objective import Objective, weighted_mean
from castalia.objectives.tokens import row_means, token_losses
from castalia.protocols import Batch

__all__ = ["BidirectionalLM"]


class BidirectionalLM(Objective):
    """Sum of the losses of a forward and a backward language model.

    The network maps rows to logits (B, T, 2, V): at each token of the one after it and of the one
    before it. A row is ``begin tokens end``, (T,), or (C, T) with the ids first. The end is
    predicted forwards and the begin backwards, so that both count as many tokens.

    Parameters
    ----------
    pad
        Id that fills up rows and never counts.

    Examples
    --------
    >>> uniform = lambda ids: torch.zeros(*ids.shape, 2, 7)
    >>> terms = BidirectionalLM(pad=0).terms(uniform, Batch(torch.tensor([[1, 5, 2, 0]])), "train")
    >>> terms["forward"].exp(), terms["loss"] == terms["forward"] + terms["backward"]
    (tensor(7.0000), tensor(True))
    """

    def __init__(self, *, pad: int) -> None:
        self.pad = pad

    def terms(self, net: Any, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the mean over rows, and the two losses it is the sum of."""
        ahead, back, counted = self.losses(net, batch.x)
        one, other = (
            weighted_mean(row_means(losses, counted), batch.weight) for losses in (ahead, back)
        )
        return {"loss": one + other, "forward": one, "backward": other}

    def losses(self, net: Any, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return -log p forwards and backwards, and which of them count, (B, T - 1) each."""
        ids, logits = x if x.ndim == 2 else x[:, 0], net(x)  # (B, T), (B, T, 2, V)
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        ahead = token_losses(logits[:, :-1, 0], ids[:, 1:])
        back = token_losses(logits[:, 1:, 1], ids[:, :-1])
        return ahead, back, ids[:, 1:] != self.pad
