"""LeNet-5: two stages of convolution and subsampling, then dense layers.

Input -> C1 6@5x5 -> S2 -> C3 16@5x5 -> S4 -> C5 120 -> F6 84 -> scores.
Shapes: B batch, C channels, H height, W width, K classes.
Reference: 1998, LeCun, Bottou, Bengio, Haffner, Gradient-based learning applied to document
recognition, Proc. IEEE 86.
Departs from it: the scores are linear, not distances to fixed codes. The defaults are today's: max
pooling, ReLU, C3 joined to all maps. ``pooling="trainable", activation="tanh", partial=True`` is
the paper's, with 60,000 free weights up to F6. The digits of 28 pixels are padded to 32 inside.
"""

from collections import OrderedDict
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.errors import InvalidParameter
from castalia.nets.vision.image_network import ImageNetwork, check_size, initialise
from castalia.nn import activation as activation_by_name
from castalia.utils.text import did_you_mean, listing

__all__ = ["LeNet"]

POOLINGS = ("max", "average", "trainable")
# Table I of the paper: the maps of S2 that each of the 16 maps of C3 sees.
SEEN = (
    *((i, (i + 1) % 6, (i + 2) % 6) for i in range(6)),
    *((i, (i + 1) % 6, (i + 2) % 6, (i + 3) % 6) for i in range(6)),
    *((i, (i + 1) % 6, (i + 3) % 6, (i + 4) % 6) for i in range(3)),
    range(6),
)


class Subsampling(nn.Module):
    """The mean of 2x2 pixels times a weight plus a bias, one of each a map."""

    def __init__(self, maps: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(maps))
        self.bias = nn.Parameter(torch.zeros(maps))

    def forward(self, x: Tensor) -> Tensor:  # (B, C, H, W)
        return F.avg_pool2d(x, 2) * self.weight[:, None, None] + self.bias[:, None, None]


class PartialConv2d(nn.Conv2d):
    """The convolution C3: each map sees the maps that the paper's table names."""

    mask: Tensor

    def __init__(self) -> None:
        super().__init__(6, 16, 5)
        mask = torch.zeros(16, 6, 1, 1)
        for row, seen in zip(mask, SEEN, strict=True):
            row[list(seen)] = 1
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, input: Tensor) -> Tensor:  # (B, 6, H, W)
        return self._conv_forward(input, self.weight * self.mask, self.bias)


class LeNet(ImageNetwork):
    """LeNet-5 for images of any size from 12 pixels on.

    Parameters
    ----------
    channels
        Channels of the images.
    classes
        Number of scores.
    size
        Height and width of the images.
    pooling
        ``"max"``, ``"average"`` or ``"trainable"`` (the paper's: a weight and a bias a map).
    activation
        Name of the non-linearity; the paper's is ``"tanh"``.
    partial
        Join the maps of C3 to S2 by the paper's table, which breaks the symmetry between them.
    initialisation
        Scheme of ``castalia.nn.init``; ``"auto"`` is ``"he"`` with ReLU and ``"glorot"`` otherwise.

    Examples
    --------
    >>> import torch
    >>> net = LeNet(1, 10)
    >>> net(torch.zeros(2, 1, 28, 28)).shape, sum(p.numel() for p in net.parameters())
    (torch.Size([2, 10]), 61706)
    """

    def __init__(
        self,
        channels: int,
        classes: int,
        *,
        size: Sequence[int] = (28, 28),
        pooling: str = "max",
        activation: str = "relu",
        partial: bool = False,
        initialisation: str = "auto",
    ) -> None:
        super().__init__()
        self.channels, self.least = channels, 12
        check_size("LeNet", size, self.least)
        height, width = ((side // 2 - 4) // 2 for side in size)
        c3 = PartialConv2d() if partial else nn.Conv2d(6, 16, 5)
        self.features = nn.Sequential(
            OrderedDict(
                c1=nn.Conv2d(channels, 6, 5, padding=2),
                **_after(1, 6, pooling, activation),
                c3=c3,
                **_after(3, 16, pooling, activation),
            )
        )
        self.head = nn.Sequential(
            OrderedDict(
                flatten=nn.Flatten(),
                c5=nn.Linear(16 * height * width, 120),
                act5=activation_by_name(activation),
                f6=nn.Linear(120, 84),
                act6=activation_by_name(activation),
                classes=nn.Linear(84, classes),
            )
        )
        scheme = "he" if activation == "relu" else "glorot"
        initialise(self, scheme if initialisation == "auto" else initialisation)


def _after(layer: int, maps: int, pooling: str, activation: str) -> dict[str, nn.Module]:
    """Pooling and activation behind a convolution; the paper squashes after its pooling."""
    if pooling not in POOLINGS:
        raise InvalidParameter(
            f"LeNet: `pooling` must be {listing(POOLINGS)}; got {pooling!r}."
            f"{did_you_mean(str(pooling), POOLINGS)}"
        )
    act = {f"act{layer}": activation_by_name(activation)}
    if pooling == "trainable":
        return {f"s{layer + 1}": Subsampling(maps), **act}
    return {**act, f"s{layer + 1}": nn.MaxPool2d(2) if pooling == "max" else nn.AvgPool2d(2)}
