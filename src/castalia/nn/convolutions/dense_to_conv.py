"""A dense layer on feature maps, rewritten as a convolution.

A dense layer on a flattened C x h x w map is a convolution whose window is the whole map. On a map
of that size both give the same; on a larger one the convolution gives the answers of the dense
layer in every window, for the price of one pass.
Reference: 2014, Sermanet et al., OverFeat, ICLR, arXiv 1312.6229.
"""

from collections.abc import Sequence
from math import prod

import torch
from torch import nn

from castalia.errors import InvalidParameter, ShapeMismatch

__all__ = ["dense_to_conv"]

CONVOLUTIONS: dict[int, type[nn.Conv1d] | type[nn.Conv2d] | type[nn.Conv3d]] = {
    1: nn.Conv1d,
    2: nn.Conv2d,
    3: nn.Conv3d,
}


@torch.no_grad()
def dense_to_conv(linear: nn.Linear, spatial: Sequence[int]) -> nn.Conv1d | nn.Conv2d | nn.Conv3d:
    """Return the convolution that computes what a dense layer computes of a flattened map.

    Parameters
    ----------
    linear
        The layer; its inputs are a map (C, n...) flattened in torch's order, channels first.
    spatial
        Positions of the map along each axis: (7, 7), or (1, 1) for the dense layers after the
        first. Its length says which convolution is returned.

    Returns
    -------
    nn.Module
        Weights are copies; number format and device are those of ``linear``.

    Examples
    --------
    >>> conv = dense_to_conv(nn.Linear(4 * 7 * 7, 10), (7, 7))
    >>> conv
    Conv2d(4, 10, kernel_size=(7, 7), stride=(1, 1))
    >>> conv(torch.zeros(1, 4, 9, 12)).shape
    torch.Size([1, 10, 3, 6])
    """
    spatial = tuple(spatial)
    if len(spatial) not in CONVOLUTIONS or min(spatial) < 1:
        raise InvalidParameter(
            f"dense_to_conv: `spatial` must be one to three positive sizes; got {spatial}."
        )
    channels, rest = divmod(linear.in_features, prod(spatial))
    if rest or not channels:
        raise ShapeMismatch(
            f"dense_to_conv: the layer's inputs must be channels times {prod(spatial)} positions "
            f"of a map of {spatial}; got {linear.in_features}."
        )
    conv = CONVOLUTIONS[len(spatial)](
        channels,
        linear.out_features,
        spatial,  # type: ignore[arg-type]
        bias=linear.bias is not None,
        device=linear.weight.device,
        dtype=linear.weight.dtype,
    )
    conv.weight.copy_(linear.weight.view_as(conv.weight))
    if linear.bias is not None and conv.bias is not None:
        conv.bias.copy_(linear.bias)
    return conv
