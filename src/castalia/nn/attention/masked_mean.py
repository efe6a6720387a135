"""The mean of a row's real tokens: attention to all of them alike."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["masked_mean"]


def masked_mean(h: Tensor, keep: Tensor) -> Tensor:  # (B, T, D), (B, T)
    """Return the mean vector of the tokens that are kept, (B, D); of none of them, zero.

    >>> masked_mean(torch.tensor([[[2.0], [4.0], [9.0]]]), torch.tensor([[True, True, False]]))
    tensor([[3.]])
    """
    keep = keep[..., None]
    return torch.where(keep, h, 0.0).sum(dim=1) / keep.sum(dim=1).clamp(min=1)
