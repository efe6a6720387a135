"""Batch normalisation with the statistics of all the data instead of moving averages."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm, _NormBase

from castalia.errors import InvalidData

__all__ = ["recompute_batch_norm", "running_statistics"]


def running_statistics(net: nn.Module) -> list[Tensor]:
    """Return the running means and variances of every normalisation that keeps them.

    >>> len(running_statistics(nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))))
    2
    """
    layers = [layer for layer in net.modules() if isinstance(layer, _NormBase)]
    return [b for layer in layers for b in layer.buffers(False) if b.is_floating_point()]


@torch.no_grad()
def recompute_batch_norm(net: nn.Module, batches: Iterable[Any]) -> nn.Module:
    """Set the running mean and variance of every batch normalisation to those of all the data.

    Layer by layer, from the first to the last: each sees its inputs as they are when the layers
    before it normalise with their final statistics. So, with the network in evaluation mode, each
    layer's outputs over these data have exactly its bias as mean and its weight as deviation.
    Needed after averaging weights, and wherever moving averages lag behind.

    Parameters
    ----------
    net
        Any network; its mode stays as it is.
    batches
        What the network is called with (a tuple: several arguments); walked through once for each
        layer, so a list or a loader, not a generator.

    Examples
    --------
    >>> net = nn.Sequential(nn.BatchNorm1d(1, eps=0)).eval()
    >>> x = torch.tensor([[1.0], [2.0], [3.0], [4.0]])
    >>> out = recompute_batch_norm(net, [x[:3], x[3:]])(x)
    >>> [round(number.item(), 6) for number in (1 + out.mean(), out.std(correction=0))]
    [1.0, 1.0]
    """
    modes = [(part, part.training) for part in net.modules()]
    net.eval()
    try:
        for layer in _in_order(net, batches):
            mean, variance = _moments(net, layer, batches)
            layer.running_mean.copy_(mean)  # type: ignore[union-attr]
            layer.running_var.copy_(variance)  # type: ignore[union-attr]
    finally:
        for part, mode in modes:
            part.training = mode
    return net


def _run(net: nn.Module, batch: Any) -> None:
    net(*(batch if isinstance(batch, tuple) else (batch,)))


def _in_order(net: nn.Module, batches: Iterable[Any]) -> list[_BatchNorm]:
    """Return the layers with running statistics in the order in which a batch meets them."""
    met: dict[_BatchNorm, None] = {}
    layers = [m for m in net.modules() if isinstance(m, _BatchNorm) and m.track_running_stats]
    hooks = [m.register_forward_pre_hook(lambda m, _: met.setdefault(m)) for m in layers]
    try:
        for batch in batches:
            _run(net, batch)
            return list(met)
    finally:
        for hook in hooks:
            hook.remove()
    raise InvalidData("recompute_batch_norm: `batches` must hold at least one batch; it is empty.")


def _moments(net: nn.Module, layer: _BatchNorm, batches: Iterable[Any]) -> tuple[Tensor, Tensor]:
    """Return mean and variance of a layer's inputs over all the data, (C,) each."""
    count, mean, squares = 0, torch.zeros(()), torch.zeros(())

    def add(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        nonlocal count, mean, squares
        x = inputs[0].transpose(0, 1).flatten(1)  # (C, B ...)
        n, own = x.shape[1], x.mean(1)
        shift = own - mean.to(own)
        # Chan et al. 1979: the squares about the common mean, from those about each batch's own.
        squares = (
            squares.to(own) + x.var(1, correction=0) * n + shift**2 * (count * n / (count + n))
        )
        mean = mean.to(own) + shift * (n / (count + n))
        count += n

    hook = layer.register_forward_pre_hook(add)
    try:
        for batch in batches:
            _run(net, batch)
    finally:
        hook.remove()
    return mean, squares / count
