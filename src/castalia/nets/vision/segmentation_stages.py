"""What networks with a label for every pixel have in common: stages, any image size, upsampling.

Shapes: B batch, C channels, H height, W width, K classes.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

__all__ = ["BilinearUp", "bilinear_kernel", "conv_stage", "pad_to_multiple"]


def conv_stage(
    channels: int, width: int, depth: int = 2, *, dilation: int = 1, dropout: float = 0.0
) -> nn.Sequential:
    """Return ``depth`` times a 3 x 3 convolution, batch norm, ReLU; height and width are kept.

    Parameters
    ----------
    channels, width
        Channels that come in, channels of every convolution.
    depth
        Number of convolutions.
    dilation
        Distance of the points a convolution reads.
    dropout
        Probability of zeroing a whole map after the last convolution.
    """
    layers: list[nn.Module] = []
    for i in range(depth):
        layers += [
            # Batch norm subtracts the mean, so a bias would have no effect.
            nn.Conv2d(
                width if i else channels, width, 3, padding=dilation, dilation=dilation, bias=False
            ),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
        ]
    if dropout:
        layers.append(nn.Dropout2d(dropout))
    return nn.Sequential(*layers)


def pad_to_multiple(x: Tensor, multiple: int) -> Tensor:  # (B, C, H, W)
    """Add zeros below and to the right until height and width are multiples of ``multiple``.

    Both become at least two multiples where they grow coarse by more than 1, so that the coarsest
    maps have more than one value and batch norm a spread, even of a single image.

    >>> pad_to_multiple(torch.ones(1, 3, 180, 240), 16).shape
    torch.Size([1, 3, 192, 240])
    """
    least = 2 if multiple > 1 else 1
    height, width = (multiple * max(least, -(-size // multiple)) for size in x.shape[2:])
    return F.pad(x, (0, width - x.shape[3], 0, height - x.shape[2]))


def bilinear_kernel(factor: int) -> Tensor:
    """Return the kernel (2 f, 2 f) with which a transposed convolution of stride f interpolates.

    >>> bilinear_kernel(2)[0]
    tensor([0.0625, 0.1875, 0.1875, 0.0625])
    """
    side = 1 - (torch.arange(2 * factor) - factor + 0.5).abs() / factor
    return torch.outer(side, side)


class BilinearUp(nn.Module):
    """Transposed convolution that enlarges each map on its own and begins as interpolation.

    Parameters
    ----------
    channels
        Number of maps.
    factor
        Even number by which height and width grow; 1 changes nothing.
    """

    def __init__(self, channels: int, factor: int) -> None:
        super().__init__()
        self.grow: nn.Module = nn.Identity()
        if factor > 1:
            grow = nn.ConvTranspose2d(
                channels,
                channels,
                2 * factor,
                stride=factor,
                padding=factor // 2,
                groups=channels,
                bias=False,
            )
            with torch.no_grad():
                grow.weight.copy_(bilinear_kernel(factor))
            self.grow = grow

    def forward(self, x: Tensor) -> Tensor:  # (B, C, H, W)
        """Return the maps, enlarged."""
        return self.grow(x)  # (B, C, f H, f W)
