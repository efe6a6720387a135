"""VGG: stacks of 3x3 convolutions, a pool after each stack, three dense layers.

Two 3x3 convolutions see 5x5 pixels and three see 7x7, with fewer weights and more ReLUs between.
Shapes: B batch, C channels, H height, W width, K classes.
Reference: 2014, Simonyan, Zisserman, Very deep convolutional networks for large-scale image
recognition, arXiv 1409.1556 (configurations A, B, D, E).
"""

from collections import OrderedDict
from collections.abc import Sequence

from torch import nn

from castalia.errors import InvalidParameter
from castalia.nets.vision.image_network import ImageNetwork, check_size, initialise, scaled
from castalia.utils.text import listing

__all__ = ["VGG"]

# Convolutions in each of the five stacks, by depth.
STACKS = {
    11: (1, 1, 2, 2, 2),
    13: (2, 2, 2, 2, 2),
    16: (2, 2, 3, 3, 3),
    19: (2, 2, 4, 4, 4),
}
WIDTHS = (64, 128, 256, 512, 512)
GRID = 7  # height and width of the last map of an image of 224 pixels


class VGG(ImageNetwork):
    """VGG of 11, 13, 16 or 19 layers; 138,357,544 weights at depth 16 and a thousand classes.

    The layers have the paper's names: ``net.features.conv4_2`` is the second convolution of the
    fourth stack.

    Parameters
    ----------
    channels
        Channels of the images.
    classes
        Number of scores.
    depth
        Layers with weights: 11, 13, 16 or 19.
    batch_norm
        Normalise after each convolution, which lets it train from scratch at larger rates.
    width
        Factor on all channels and dense widths; below 1 for small problems.
    dropout
        Probability of zeroing an output of the two hidden dense layers in training.
    size
        Height and width of the images. The dense layers see a map of 7x7, to which larger maps are
        averaged; of smaller images it is as large as it is. None is 224 and more.
    initialisation
        Scheme of ``castalia.nn.init``.

    Examples
    --------
    >>> import torch
    >>> VGG(3, 5, depth=11, width=0.125, size=(32, 32))(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 5])
    """

    def __init__(
        self,
        channels: int,
        classes: int,
        *,
        depth: int = 16,
        batch_norm: bool = False,
        width: float = 1.0,
        dropout: float = 0.5,
        size: Sequence[int] | None = None,
        initialisation: str = "he",
    ) -> None:
        super().__init__()
        if depth not in STACKS:
            raise InvalidParameter(f"VGG: `depth` must be {listing(STACKS)}; got {depth!r}.")
        self.channels, self.least = channels, 32
        check_size("VGG", size, self.least)
        self.features, inputs = nn.Sequential(), channels
        for i, (convs, full) in enumerate(zip(STACKS[depth], WIDTHS, strict=True), start=1):
            outputs = scaled(full, width)
            for j in range(1, convs + 1):
                self.features.add_module(f"conv{i}_{j}", nn.Conv2d(inputs, outputs, 3, padding=1))
                if batch_norm:
                    self.features.add_module(f"norm{i}_{j}", nn.BatchNorm2d(outputs))
                self.features.add_module(f"relu{i}_{j}", nn.ReLU())
                inputs = outputs
            self.features.add_module(f"pool{i}", nn.MaxPool2d(2))
        height, across = (GRID, GRID) if size is None else (min(GRID, s // 32) for s in size)
        dense = scaled(4096, width)
        self.head = nn.Sequential(
            OrderedDict(
                pool=nn.AdaptiveAvgPool2d((height, across)),
                flatten=nn.Flatten(),
                dense6=nn.Linear(inputs * height * across, dense),
                relu6=nn.ReLU(),
                dropout6=nn.Dropout(dropout),
                dense7=nn.Linear(dense, dense),
                relu7=nn.ReLU(),
                dropout7=nn.Dropout(dropout),
                classes=nn.Linear(dense, classes),
            )
        )
        initialise(self, initialisation)
