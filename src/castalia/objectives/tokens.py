"""What objectives on rows of tokens share: losses of tokens, means over rows, moving tokens up.

A row is right-padded; what is not padding is real. Every function keeps fixed shapes and reads
nothing back from the device, so that a training step can be recorded as a graph.
Shapes: B batch, T tokens, V vocabulary.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

__all__ = ["chance", "compact", "ranks", "row_means", "shift_right", "token_losses"]


def token_losses(logits: Tensor, targets: Tensor, label_smoothing: float = 0.0) -> Tensor:
    """Return -log p of each target, (B, T), from logits (B, T, V).

    >>> token_losses(torch.zeros(1, 2, 4), torch.tensor([[0, 3]])).exp()
    tensor([[4., 4.]])
    """
    losses = F.cross_entropy(
        logits.flatten(0, 1), targets.flatten(), reduction="none", label_smoothing=label_smoothing
    )
    return losses.view_as(targets)


def row_means(losses: Tensor, counted: Tensor, per: float | None = None) -> Tensor:
    """Return one loss a row, (B,): the mean over the counted tokens.

    Parameters
    ----------
    losses
        Of each token, (B, T).
    counted
        Which tokens count, (B, T); a row without any costs nothing.
    per
        A number that divides every row's sum instead of the row's own count; then every token
        counts the same, whether its row is short or long.

    Examples
    --------
    >>> row_means(torch.tensor([[1.0, 3.0, 9.0]]), torch.tensor([[True, True, False]]))
    tensor([2.])
    """
    total = torch.where(counted, losses, 0.0).sum(dim=1)
    return total / (counted.sum(dim=1).clamp_min(1) if per is None else per)


def shift_right(ids: Tensor, start: int) -> Tensor:
    """Return what a decoder reads to write ``ids``: the start, then all but the last.

    >>> shift_right(torch.tensor([[5, 6, 7]]), 1)
    tensor([[1, 5, 6]])
    """
    return F.pad(ids[:, :-1], (1, 0), value=start)


def compact(ids: Tensor, keep: Tensor, pad: int, width: int | None = None) -> Tensor:
    """Return the kept tokens of each row moved up to its beginning, padded behind.

    Examples
    --------
    >>> compact(torch.tensor([[5, 6, 7]]), torch.tensor([[True, False, True]]), pad=0)
    tensor([[5, 7, 0]])
    """
    order = (~keep).to(torch.uint8).argsort(dim=1, stable=True)
    moved = torch.where(keep, ids, pad).gather(1, order)
    width = ids.shape[1] if width is None else width
    return F.pad(moved, (0, max(0, width - ids.shape[1])), value=pad)[:, :width]


def ranks(eligible: Tensor, source: torch.Generator | None = None) -> Tensor:
    """Return a random order of the eligible places of each row, (B, T): 0 comes first.

    Places that are not eligible come after all others.
    """
    keys = torch.rand(eligible.shape, device=eligible.device, generator=source)
    return torch.where(eligible, keys, 2.0).argsort(dim=1).argsort(dim=1)


def chance(net: nn.Module, device: torch.device) -> torch.Generator | None:
    """Return where random numbers come from: in training the seed's, else always the same.

    A validation loss then measures the same damage after every epoch.
    """
    return None if net.training else torch.Generator(device).manual_seed(0)
