"""A classifier of images as a convolution: its answers in every window of a larger image.

f(x)_ij = f(x[iS : iS + H, jS : jS + W]),  S the stride of the features.  Features slide as they
are. The head's pool and its first dense layer are one linear map of the last h x w maps, hence a
convolution; later dense layers are 1 x 1 convolutions.
Shapes: B batch, C channels, H x W window, h x w its last maps, K classes.
Reference: 2014, Sermanet et al., OverFeat, ICLR, arXiv 1312.6229.
"""

from collections.abc import Sequence
from copy import deepcopy

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.errors import InvalidParameter
from castalia.nets.vision.image_network import ImageNetwork, check_size
from castalia.nn import dense_to_conv
from castalia.utils.seeds import seed_scope

__all__ = ["feature_stride", "fully_convolutional"]

FAR = 1 << 16  # pixels: long enough for the stride to be read off the growth of the maps


def fully_convolutional(net: nn.Module, window: Sequence[int]) -> nn.Sequential:
    """Return the network that answers for every window of an image at once.

    Parameters
    ----------
    net
        A classifier with ``features`` and ``head``, such as those of ``castalia.nets.vision``.
    window
        Height and width of the images it was trained on.

    Returns
    -------
    nn.Sequential
        ``features`` and ``head``; from (B, C, H', W') to the class maps (B, K, H'', W''), in
        evaluation mode. Weights are copies.

    Notes
    -----
    Without padding, an entry equals the answer for its window. With padding, a window cut out
    would see zeros around it where the map sees the rest of the image.

    Examples
    --------
    >>> from castalia.nets.vision import LeNet
    >>> fully_convolutional(LeNet(1, 10), (28, 28))(torch.zeros(1, 1, 40, 48)).shape
    torch.Size([1, 10, 4, 6])
    """
    if not isinstance(net, ImageNetwork) or net.dims != 2:
        raise InvalidParameter(
            "fully_convolutional: `net` must be a classifier of images from castalia.nets.vision;"
            f" got {type(net).__name__}."
        )
    check_size(type(net).__name__, window, net.least)
    features = deepcopy(net.features)
    height, width = _map_size(features, net.channels, window)
    made = nn.Sequential()
    made.add_module("features", features)
    with seed_scope(0):  # new layers draw weights before they get theirs
        made.add_module("head", _sliding_head(net.head, (height, width)))
    return made.eval()


def feature_stride(net: ImageNetwork, window: Sequence[int]) -> tuple[int, int]:
    """Return the pixels between neighbouring entries of the last maps, down and across.

    >>> from castalia.nets.vision import VGG
    >>> feature_stride(VGG(3, 2, depth=11, width=0.1), (64, 64))
    (32, 32)
    """
    near = _map_size(net.features, net.channels, window)
    far = _map_size(net.features, net.channels, [side + FAR for side in window])
    down, across = (round(FAR / (b - a)) for a, b in zip(near, far, strict=True))
    return down, across


def _map_size(features: nn.Module, channels: int, size: Sequence[int]) -> tuple[int, int]:
    """Return the size of the last maps; only shapes are computed."""
    shapes = deepcopy(features).to("meta", torch.float32).eval()
    height, width = shapes(torch.empty(1, channels, *size, device="meta")).shape[2:]
    return height, width


def _sliding_head(head: nn.Sequential, size: tuple[int, int]) -> nn.Sequential:
    """Rewrite pool, flattening and dense layers for maps of any size; dropout is asleep."""
    found = nn.Sequential()
    pool: nn.AdaptiveAvgPool2d | None = None
    first = True
    for name, layer in head.named_children():
        if isinstance(layer, nn.AdaptiveAvgPool2d):
            pool = layer
        elif isinstance(layer, nn.Linear):
            made = _first_dense(layer, size, pool) if first else dense_to_conv(layer, (1, 1))
            found.add_module(name, made)
            first = False
        elif not isinstance(layer, nn.Flatten | nn.Dropout):
            found.add_module(name, deepcopy(layer))
    return found


def _first_dense(
    layer: nn.Linear, size: tuple[int, int], pool: nn.AdaptiveAvgPool2d | None
) -> nn.Module:
    """Return the pool and the dense layer behind it as one layer that slides by one place."""
    cells = size if pool is None else _pair(pool.output_size)
    if size[0] % cells[0] or size[1] % cells[1]:
        return dense_to_conv(_through_pool(layer, size, cells), size)
    kernel = size[0] // cells[0], size[1] // cells[1]
    conv = dense_to_conv(layer, cells)
    if kernel == (1, 1):
        return conv
    conv.dilation = kernel  # the pools that one window sees are a kernel apart
    return nn.Sequential(nn.AvgPool2d(kernel, stride=1), conv)


@torch.no_grad()
def _through_pool(layer: nn.Linear, size: tuple[int, int], cells: tuple[int, int]) -> nn.Linear:
    """Return the dense layer on the unpooled map, where cells overlap and no pool slides alike."""
    weight = layer.weight.unflatten(1, (-1, *cells))  # (K, C, a, b)
    down, across = (_shares(n, m, weight) for n, m in zip(size, cells, strict=True))
    spread = torch.einsum("kcab,ah,bw->kchw", weight, down, across).flatten(1)
    wide = nn.Linear(spread.shape[1], spread.shape[0], bias=layer.bias is not None).to(weight)
    wide.weight.copy_(spread)
    if layer.bias is not None:
        wide.bias.copy_(layer.bias)
    return wide


def _shares(side: int, cells: int, like: Tensor) -> Tensor:
    """Return the share of each place in each cell of an adaptive pool, (cells, side)."""
    each = torch.eye(side, dtype=like.dtype, device=like.device)
    return F.adaptive_avg_pool1d(each, cells).T


def _pair(size: int | tuple[int | None, int | None] | None) -> tuple[int, int]:
    found = size if isinstance(size, tuple) else (size, size)
    if found[0] is None or found[1] is None:
        raise InvalidParameter(
            "fully_convolutional: the pool of the head must have a fixed output size; got "
            f"{size!r}."
        )
    return found[0], found[1]
