"""From numbers to spikes, and nothing else."""

from __future__ import annotations

import torch
from torch import Tensor

from castalia.errors import InvalidParameter

__all__ = ["delta_code", "latency_code", "rate_code"]


def rate_code(x: Tensor, random: torch.Generator | None = None) -> Tensor:
    """Draw spikes with the probabilities x, between 0 and 1, in each step.

    >>> rate_code(torch.tensor([0.0, 1.0])).tolist()
    [0.0, 1.0]
    """
    drawn = torch.rand(x.shape, generator=random, dtype=torch.float64)
    return (drawn.to(x) < x.clamp(0, 1)).to(x)


def latency_code(x: Tensor, steps: int) -> Tensor:
    """Return one spike a value, the earlier the larger: (B, D) in [0, 1] to (B, steps, D).

    >>> latency_code(torch.tensor([[1.0, 0.5, 0.0]]), 3)[0].tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    when = ((1 - x.clamp(0, 1)) * (steps - 1)).round().long()
    return torch.nn.functional.one_hot(when, steps).transpose(1, 2).to(x)


def delta_code(x: Tensor, threshold: float = 0.1) -> Tensor:
    """Return spikes where x, (B, T, D), has risen or fallen by a threshold: (B, T, 2 D).

    The first half of the channels marks rises, the second falls; each spike moves the level that x
    is compared with by one threshold. A change of more than one threshold a step is followed late.

    >>> delta_code(torch.tensor([[[0.0], [0.2], [0.2], [0.0]]]), 0.15)[0].tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.0, 0.0], [0.0, 1.0]]
    """
    if threshold <= 0:
        raise InvalidParameter(f"delta_code: `threshold` must be above 0; got {threshold}.")
    level, found = x[:, 0], []
    for t in range(x.shape[1]):
        up, down = x[:, t] - level >= threshold, level - x[:, t] >= threshold
        level = level + threshold * (up.to(x) - down.to(x))
        found.append(torch.cat([up, down], dim=-1))
    return torch.stack(found, dim=1).to(x)
