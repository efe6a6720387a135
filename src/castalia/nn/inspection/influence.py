"""Which inputs an output listens to, and how much: the receptive field by gradients.

Shapes: C channels, n positions (any number of axes).
Reference: 2016, Luo, Li, Urtasun, Zemel, Understanding the effective receptive field in deep
convolutional neural networks, NeurIPS, arXiv 1701.04128.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.nn.network_modes import evaluating

__all__ = ["influence"]


def influence(net: nn.Module, x: Tensor, at: Sequence[int] | None = None) -> Tensor:
    """Return how strongly the outputs at one position depend on each input position.

    Where it is not zero is the receptive field, as far as these inputs show it: a ReLU that is
    silent, or a maximum elsewhere, hides what another input would show. Its size within the field
    is the effective receptive field, which falls off towards the border.

    Parameters
    ----------
    net
        A network from (B, C, n...) to (B, O, m...) or (B, O); run in evaluation mode.
    x
        Inputs (B, C, n...).
    at
        The output's position along each axis; by default the middle, or nothing for (B, O).

    Returns
    -------
    Tensor (n...)
        Absolute derivatives by the inputs, summed over channels and averaged over rows.

    Examples
    --------
    >>> conv = nn.Conv1d(1, 1, 3, dilation=2, padding=2)
    >>> (influence(conv, torch.ones(1, 1, 9), at=(4,)) > 0).int()
    tensor([0, 0, 1, 0, 1, 0, 1, 0, 0], dtype=torch.int32)
    """
    if x.ndim < 3:
        raise ShapeMismatch(f"influence: `x` must be (B, C, n...); got {tuple(x.shape)}.")
    x = x.detach().requires_grad_()
    with torch.enable_grad(), evaluating(net):
        out = net(x)
    sizes = tuple(out.shape[2:])
    at = tuple(n // 2 for n in sizes) if at is None else tuple(at)
    if len(at) != len(sizes) or any(not 0 <= i < n for i, n in zip(at, sizes, strict=False)):
        raise InvalidParameter(
            f"influence: `at` must be a position of the output of size {sizes}; got {at}."
        )
    total = torch.zeros_like(x)
    for channel in range(out.shape[1]):  # summed outputs could cancel
        chosen = out[(slice(None), channel, *at)].sum()
        (slope,) = torch.autograd.grad(chosen, x, retain_graph=True)
        total += slope.abs()
    return total.sum(dim=1).mean(dim=0)
