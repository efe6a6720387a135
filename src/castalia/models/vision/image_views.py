"""Several views of an image, whose scores are averaged when predicting."""

from __future__ import annotations

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor

__all__ = ["VIEWS", "average_views"]

VIEWS = ("one", "flip", "shift")


def average_views(net: Callable[[Tensor], Tensor], x: Tensor, views: str) -> Tensor:
    """Return the mean of a network's scores over views of images, (B, K).

    Parameters
    ----------
    net
        From images to scores.
    x
        Images, (B, C, H, W).
    views
        ``"one"``: the image; ``"flip"``: and its mirror image; ``"shift"``: half of the weight is
        theirs, half that of both moved by a pixel, up and left, and down and right.

    Examples
    --------
    >>> import torch
    >>> average_views(lambda x: x[:, 0, 0], torch.tensor([[[[0.0, 4.0]]]]), "flip")
    tensor([[2., 2.]])
    """
    if views == "one":
        return net(x)
    scores = (net(x) + net(x.flip(-1))) / 2
    if views == "flip":
        return scores
    height, width = x.shape[-2:]
    wide = F.pad(x, (1, 1, 1, 1), mode="reflect")
    moved = [wide[..., i : i + height, i : i + width] for i in (0, 2)]
    others = [average_views(net, view, "flip") for view in moved]
    return scores / 2 + (others[0] + others[1]) / 4
