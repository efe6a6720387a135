"""Batch normalisation over a batch that several processes share.

Every process gives the mean, variance and number of its values; from these follow those of the
whole batch, exactly: with n = Σ nᵣ, μ = Σ nᵣ μᵣ / n and σ² = Σ nᵣ (σᵣ² + (μᵣ - μ)²) / n.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

__all__ = ["ordinary_moments", "shared_moments"]


class Processes(Protocol):
    """Those that share a batch."""

    rank: int
    world: int
    idle: bool


def shared_moments(net: nn.Module, processes: Processes) -> None:
    """Let the batch normalisations of a network take the moments of the whole batch."""
    for layer in net.modules():
        if isinstance(layer, _BatchNorm) and not isinstance(layer, nn.SyncBatchNorm):
            layer.forward = partial(_normalised, layer, processes)  # type: ignore[method-assign]


def ordinary_moments(net: nn.Module) -> None:
    """Undo ``shared_moments``."""
    for layer in net.modules():
        if isinstance(layer, _BatchNorm):
            vars(layer).pop("forward", None)


def _normalised(layer: _BatchNorm, processes: Processes, x: Tensor) -> Tensor:
    """Return what the layer makes of this process's share of a batch, (B, C, …)."""
    if not layer.training and layer.running_mean is not None:
        return type(layer).forward(layer, x)
    layer._check_input_dim(x)
    count, mean, variance = _moments(_exact(x), processes)
    if layer.training and layer.running_mean is not None:
        _remember(layer, count, mean.detach(), variance.detach())
    scale = torch.rsqrt(variance + layer.eps)
    scale = scale if layer.weight is None else scale * layer.weight
    shift = -mean * scale if layer.bias is None else layer.bias - mean * scale
    shape = (1, -1, *[1] * (x.ndim - 2))
    return (_exact(x) * scale.view(shape) + shift.view(shape)).to(x.dtype)


def _exact(x: Tensor) -> Tensor:
    """Return numbers that are exact enough to be added up."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def _moments(x: Tensor, processes: Processes) -> tuple[Tensor, Tensor, Tensor]:
    """Return the number of values of a channel, (), their means and variances, (C,) each."""
    axes = [0, *range(2, x.ndim)]
    variance, mean = torch.var_mean(x, axes, correction=0)
    number = mean.new_full((1,), 0 if processes.idle else x.numel() // x.shape[1])
    mine = (torch.arange(processes.world, device=x.device) == processes.rank)[:, None]
    every: Tensor = _Sum.apply(mine * torch.cat([number, mean, variance]))  # (processes, 1 + 2C)
    weight, (means, variances) = every[:, :1], every[:, 1:].chunk(2, dim=1)
    count = weight.sum()
    mean = (weight * means).sum(dim=0) / count
    return count, mean, (weight * (variances + (means - mean).square())).sum(dim=0) / count


class _Sum(torch.autograd.Function):
    """The sum over processes; each one's share of it gets the gradients of all."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        total = x.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        total = gradients[0].contiguous().clone()
        dist.all_reduce(total)
        return total


@torch.no_grad()
def _remember(layer: _BatchNorm, count: Tensor, mean: Tensor, variance: Tensor) -> None:
    """Move the running statistics towards those of a batch, as torch does."""
    share: Any = layer.momentum
    if layer.num_batches_tracked is not None:
        layer.num_batches_tracked.add_(1)
        share = 1 / layer.num_batches_tracked if share is None else share
    unbiased = variance * (count / (count - 1).clamp_min(1))
    for kept, found in ((layer.running_mean, mean), (layer.running_var, unbiased)):
        kept.lerp_(found.to(kept.dtype), share)  # type: ignore[union-attr]
