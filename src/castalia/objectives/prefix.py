"""Prefix language model: the beginning is read from both sides, the rest is written.

A row is cut at a random place; the tokens before it see each other, those after it see what stands
before them. Minimised is the mean of -log p of the tokens after the cut.
Reference: 2020, Raffel et al., Exploring the limits of transfer learning, arXiv 1910.10683, 3.2.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from castalia.nn.attention import prefix
from castalia.objectives.objective import Objective, weighted_mean
from castalia.objectives.tokens import chance, row_means, token_losses
from castalia.protocols import Batch

__all__ = ["PrefixLM"]


class PrefixLM(Objective):
    """Continue a beginning; the network is one of ``features(ids, keep=…, mask=…)`` and ``head``.

    Parameters
    ----------
    pad
        Id of padding.
    length
        Tokens of the beginning; None: drawn for each row, from 1 to all but one.
    """

    def __init__(self, *, pad: int, length: int | None = None) -> None:
        self.pad, self.length = pad, length

    def cuts(self, ids: Tensor, source: torch.Generator | None = None) -> Tensor:
        """Return the length of each row's beginning, (B,)."""
        last = ((ids != self.pad).sum(dim=1) - 1).clamp_min(1)  # all but one
        if self.length is not None:
            return last.clamp_max(self.length)
        share = torch.rand(len(ids), device=ids.device, generator=source)
        return (1 + (share * last).long()).minimum(last)

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the mean over rows of the mean over the tokens after the cut."""
        ids = batch.x
        keep, cuts = ids != self.pad, self.cuts(ids, chance(net, ids.device))
        h = net.features(ids, keep=keep, mask=prefix(cuts))  # type: ignore[operator]
        losses = token_losses(net.head(h[:, :-1]), ids[:, 1:])  # type: ignore[operator]
        place = torch.arange(1, ids.shape[1], device=ids.device)
        counted = keep[:, 1:] & (place >= cuts[:, None])
        return {"loss": weighted_mean(row_means(losses, counted), batch.weight)}
