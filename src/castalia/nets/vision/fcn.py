"""Fully convolutional network: a classifier's stages, its dense layers as convolutions.

Scores of stride 32 are enlarged to the image (FCN-32s), or first added to scores made from finer
maps: s16 = up2(s32) + score(pool4) (FCN-16s), s8 = up2(s16) + score(pool3) (FCN-8s).
Shapes: B batch, C channels, H height, W width, K classes.
Reference: 2015, Long, Shelhamer, Darrell, Fully convolutional networks for semantic segmentation,
arXiv 1411.4038.
Departs from it: batch norm (it is trained from nothing), the first dense layer is a 3 x 3
convolution instead of 7 x 7, every transposed convolution is learnt and acts on each class alone,
and images are padded to whole cells instead of by 100 pixels.
"""

from collections.abc import Sequence

from torch import Tensor, nn

from castalia.errors import InvalidParameter
from castalia.nets.vision.segmentation_stages import BilinearUp, conv_stage, pad_to_multiple

__all__ = ["FCN"]


class FCN(nn.Module):
    """Fully convolutional network with the stages of a VGG.

    Parameters
    ----------
    channels
        Channels of an image.
    classes
        Number of classes.
    stride
        32, 16 or 8: the cell of the finest scores; smaller is sharper.
    widths
        Channels of the five stages; each ends in a pooling that halves height and width.
    depths
        Convolutions of the five stages.
    hidden
        Channels of the two layers that were dense in the classifier.
    dropout
        Probability of zeroing a map of those two layers in training.

    Examples
    --------
    >>> import torch
    >>> net = FCN(3, 11, stride=8, widths=(8, 8, 16, 16, 16), hidden=32)
    >>> net(torch.zeros(2, 3, 90, 120)).shape
    torch.Size([2, 11, 90, 120])
    """

    def __init__(
        self,
        channels: int,
        classes: int,
        *,
        stride: int = 32,
        widths: Sequence[int] = (64, 128, 256, 512, 512),
        depths: Sequence[int] = (2, 2, 3, 3, 3),
        hidden: int = 4096,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        if stride not in (8, 16, 32):
            raise InvalidParameter(f"FCN: `stride` must be 32, 16 or 8; got {stride!r}.")
        if len(widths) != 5 or len(depths) != 5:
            raise InvalidParameter(
                "FCN: `widths` and `depths` must have one entry for each of the five stages; got "
                f"{tuple(widths)} and {tuple(depths)}."
            )
        inputs = [channels, *widths]
        self.stages = nn.ModuleList(
            nn.Sequential(conv_stage(*sizes), nn.MaxPool2d(2))
            for sizes in zip(inputs, widths, depths, strict=False)
        )
        self.dense = nn.Sequential(
            conv_stage(widths[4], hidden, 1, dropout=dropout),
            nn.Conv2d(hidden, hidden, 1, bias=False),
            nn.BatchNorm2d(hidden),
            nn.ReLU(inplace=True),
            nn.Dropout2d(dropout),
        )
        self.score = nn.Conv2d(hidden, classes, 1)
        # Scores of pool4, then of pool3: the maps that are added on the way up.
        finer = [widths[3], widths[2]][: {32: 0, 16: 1, 8: 2}[stride]]
        self.finer = nn.ModuleList(nn.Conv2d(width, classes, 1) for width in finer)
        self.enlarge = nn.ModuleList(BilinearUp(classes, 2) for _ in finer)
        self.up = BilinearUp(classes, stride)

    def forward(self, x: Tensor) -> Tensor:  # (B, C, H, W)
        """Return scores of the classes for every pixel."""
        height, width = x.shape[2:]
        h, pooled = pad_to_multiple(x, 32), []
        for stage in self.stages:
            h = stage(h)
            pooled.append(h)
        scores = self.score(self.dense(h))  # (B, K, H/32, W/32)
        for enlarge, finer, maps in zip(self.enlarge, self.finer, pooled[3:1:-1], strict=False):
            scores = enlarge(scores) + finer(maps)
        return self.up(scores)[:, :, :height, :width]  # (B, K, H, W)
