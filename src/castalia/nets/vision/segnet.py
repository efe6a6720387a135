"""SegNet: the encoder remembers where each maximum was, the decoder puts values back there.

p, i = maxpool(h) on the way down; h = conv(unpool(p, i)) on the way up, where unpool writes each
value to the place i its maximum came from and zero everywhere else.
Shapes: B batch, C channels, H height, W width, K classes.
Reference: 2017, Badrinarayanan, Kendall, Cipolla, SegNet: a deep convolutional encoder-decoder
architecture for image segmentation, TPAMI 39, arXiv 1511.00561.
"""

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from castalia.errors import InvalidParameter
from castalia.nets.vision.segmentation_stages import conv_stage, pad_to_multiple

__all__ = ["SegNet", "unpool"]


def unpool(x: Tensor, places: Tensor) -> Tensor:  # (B, C, H, W) both
    """Put every value where its maximum was, in maps twice as high and wide.

    ``F.max_unpool2d`` for halving poolings, in every precision and memory format.

    >>> import torch
    >>> x, places = F.max_pool2d(torch.tensor([[[[1.0, 5.0], [2.0, 3.0]]]]), 2, return_indices=True)
    >>> unpool(x, places)
    tensor([[[[0., 5.],
              [0., 0.]]]])
    """
    height, width = x.shape[2:]
    flat = x.new_zeros(*x.shape[:2], 4 * height * width)
    return flat.scatter(2, places.flatten(2), x.flatten(2)).unflatten(2, (2 * height, 2 * width))


class SegNet(nn.Module):
    """Encoder and mirrored decoder, joined by the places of the maxima.

    Parameters
    ----------
    channels
        Channels of an image.
    classes
        Number of classes.
    widths
        Channels of the encoder's stages; each ends in a pooling that halves height and width.
    depths
        Convolutions of the stages; two everywhere by default for other than five stages.
    indices
        Whether the decoder uses the places of the maxima; False repeats each value four times
        instead, which is what they are compared with.

    Examples
    --------
    >>> import torch
    >>> SegNet(3, 11, widths=(8, 16))(torch.zeros(2, 3, 45, 60)).shape
    torch.Size([2, 11, 45, 60])
    """

    def __init__(
        self,
        channels: int,
        classes: int,
        *,
        widths: Sequence[int] = (64, 128, 256, 512, 512),
        depths: Sequence[int] | None = None,
        indices: bool = True,
    ) -> None:
        super().__init__()
        if depths is None:
            depths = (2, 2, 3, 3, 3) if len(widths) == 5 else (2,) * len(widths)
        if not widths or len(widths) != len(depths):
            raise InvalidParameter(
                "SegNet: `widths` and `depths` must have one entry a stage; got "
                f"{tuple(widths)} and {tuple(depths)}."
            )
        self.indices = indices
        inputs = [channels, *widths]
        self.down = nn.ModuleList(
            conv_stage(*sizes) for sizes in zip(inputs, widths, depths, strict=False)
        )
        self.up = nn.ModuleList(
            _decoder(width, below, depth)
            for width, below, depth in zip(
                widths[::-1], [*widths[-2::-1], widths[0]], depths[::-1], strict=True
            )
        )
        self.score = nn.Conv2d(widths[0], classes, 1)

    def forward(self, x: Tensor) -> Tensor:  # (B, C, H, W)
        """Return scores of the classes for every pixel."""
        height, width = x.shape[2:]
        h, places = pad_to_multiple(x, 2 ** len(self.down)), []
        for stage in self.down:
            h, place = F.max_pool2d(stage(h), 2, return_indices=True)
            places.append(place)
        for stage, place in zip(self.up, reversed(places), strict=True):
            h = unpool(h, place) if self.indices else F.interpolate(h, scale_factor=2.0)
            h = stage(h)
        return self.score(h)[:, :, :height, :width]  # (B, K, H, W)


def _decoder(width: int, below: int, depth: int) -> nn.Sequential:
    """Return a stage whose last convolution has the channels of the stage above it."""
    return nn.Sequential(*conv_stage(width, width, depth - 1), *conv_stage(width, below, 1))
