"""ConvNeXt: a convolutional network with the habits of a transformer.

A block is x <- x + s down(gelu(up(norm(depthwise 7x7(x))))), dense layers over the channels of each
place, s a learnt factor a channel. Patches of 4 x 4 pixels come first; between stages a norm and
patches of 2 x 2 halve the map.  Shapes: B batch, C channels, H height, W width, K classes.
Reference: 2022, Liu et al., A ConvNet for the 2020s, arXiv 2201.03545.
"""

from collections import OrderedDict
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from castalia.errors import InvalidParameter
from castalia.nets.vision.image_network import ImageNetwork, check_size

__all__ = ["ConvNeXt"]

EPS = 1e-6  # of the norms
SCALE = 1e-6  # of every block at the start


class ChannelNorm(nn.LayerNorm):
    """Layer norm over the channels of each place."""

    def forward(self, input: Tensor) -> Tensor:  # (B, C, H, W)
        """Return normalised maps, (B, C, H, W)."""
        return super().forward(input.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Block(nn.Module):
    """Filters a channel, then dense layers over channels, around a shortcut."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width, eps=EPS)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.gelu = nn.GELU()
        self.scale = nn.Parameter(torch.full((width, 1, 1), SCALE))

    def forward(self, x: Tensor) -> Tensor:  # (B, C, H, W)
        """Return the maps after one block, (B, C, H, W)."""
        h = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        h = self.down(self.gelu(self.up(h))).permute(0, 3, 1, 2)
        return x + self.scale * h


class ConvNeXt(ImageNetwork):
    """Stages of depthwise filters and dense layers over channels.

    Parameters
    ----------
    channels
        Channels of the images.
    classes
        Number of scores.
    widths
        Channels of each stage.
    blocks
        Blocks of each stage; (3, 3, 9, 3) with the default widths is the tiny one.
    patch
        Height and width of the first patches.
    size
        Height and width of the images, where known.

    Examples
    --------
    >>> net = ConvNeXt(3, 10, widths=(8, 16), blocks=(1, 1))
    >>> net(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """

    def __init__(
        self,
        channels: int,
        classes: int,
        *,
        widths: Sequence[int] = (96, 192, 384, 768),
        blocks: Sequence[int] = (3, 3, 9, 3),
        patch: int = 4,
        size: Sequence[int] | None = None,
    ) -> None:
        super().__init__()
        if not widths or len(widths) != len(blocks):
            raise InvalidParameter(
                "ConvNeXt: `widths` and `blocks` must name the same stages; got "
                f"{tuple(widths)} and {tuple(blocks)}."
            )
        self.channels, self.least = channels, patch * 2 ** (len(widths) - 1)
        check_size("ConvNeXt", size, self.least)
        stem = nn.Conv2d(channels, widths[0], patch, stride=patch)
        layers: dict[str, nn.Module] = {
            "stem": nn.Sequential(OrderedDict(conv=stem, norm=ChannelNorm(widths[0], eps=EPS)))
        }
        for i, (width, count) in enumerate(zip(widths, blocks, strict=True), start=1):
            if i > 1:
                layers[f"shrink{i}"] = _shrink(widths[i - 2], width)
            layers[f"stage{i}"] = nn.Sequential(*(Block(width) for _ in range(count)))
        self.features = nn.Sequential(OrderedDict(layers))
        self.head = nn.Sequential(
            OrderedDict(
                pool=nn.AdaptiveAvgPool2d(1),
                norm=ChannelNorm(widths[-1], eps=EPS),
                flatten=nn.Flatten(),
                classes=nn.Linear(widths[-1], classes),
            )
        )
        self._initialise()

    @torch.no_grad()
    def _initialise(self) -> None:
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d | nn.Linear):
                nn.init.trunc_normal_(layer.weight, std=0.02)
                nn.init.zeros_(layer.bias)  # type: ignore[arg-type]


def _shrink(inputs: int, outputs: int) -> nn.Sequential:
    conv = nn.Conv2d(inputs, outputs, 2, stride=2)
    return nn.Sequential(OrderedDict(norm=ChannelNorm(inputs, eps=EPS), conv=conv))
