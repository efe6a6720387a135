"""U-Net: an encoder, a decoder, and at every size the encoder's maps beside the decoder's.

h_i = conv(pool(h_{i-1})) down;  u_i = conv([h_i, up(u_{i+1})]) up.
Shapes: B batch, C channels, H height, W width, K classes.
Reference: 2015, Ronneberger, Fischer, Brox, U-Net: convolutional networks for biomedical image
segmentation, MICCAI, arXiv 1505.04597.
Departs from it: convolutions keep the size, so every pixel gets a label, and have batch norm.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.errors import InvalidParameter
from castalia.nets.vision.segmentation_stages import conv_stage, pad_to_multiple

__all__ = ["UNet"]


class UNet(nn.Module):
    """Encoder and decoder with skip concatenation.

    Parameters
    ----------
    channels
        Channels of an image.
    classes
        Number of classes.
    widths
        Channels from the full size to the coarsest one; between two of them height and width
        halve. More of them see more context.
    depth
        Convolutions at each size, on each side.
    dropout
        Probability of zeroing a map at the two coarsest sizes in training.

    Examples
    --------
    >>> net = UNet(3, 11, widths=(8, 16, 32))
    >>> net(torch.zeros(2, 3, 45, 60)).shape
    torch.Size([2, 11, 45, 60])
    """

    def __init__(
        self,
        channels: int,
        classes: int,
        *,
        widths: Sequence[int] = (64, 128, 256, 512, 1024),
        depth: int = 2,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if not widths:
            raise InvalidParameter("UNet: `widths` must hold one size or more; got ().")
        coarse = len(widths) - 2
        self.down = nn.ModuleList(
            conv_stage(a, b, depth, dropout=dropout if i >= coarse else 0.0)
            for i, (a, b) in enumerate(zip([channels, *widths], widths, strict=False))
        )
        steps = list(zip(widths[:0:-1], widths[-2::-1], strict=True))  # (coarse, fine) going up
        self.enlarge = nn.ModuleList(nn.ConvTranspose2d(a, b, 2, stride=2) for a, b in steps)
        self.up = nn.ModuleList(conv_stage(2 * b, b, depth) for _, b in steps)
        self.score = nn.Conv2d(widths[0], classes, 1)

    def forward(self, x: Tensor) -> Tensor:  # (B, C, H, W)
        """Return scores of the classes for every pixel."""
        height, width = x.shape[2:]
        h = self.down[0](pad_to_multiple(x, 2 ** len(self.up)))
        skips = []
        for stage in self.down[1:]:
            skips.append(h)
            h = stage(F.max_pool2d(h, 2))
        for enlarge, stage in zip(self.enlarge, self.up, strict=True):
            h = stage(torch.cat([skips.pop(), enlarge(h)], dim=1))
        return self.score(h)[:, :, :height, :width]  # (B, K, H, W)
