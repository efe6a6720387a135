"""AlexNet: five convolutions and three dense layers with ReLU, overlapping pools and dropout.

conv 11x11/4 - pool - conv 5x5 - pool - three conv 3x3 - pool - 4096 - 4096 - K.
Two towers is the network of 2012, cut in halves that meet in the third convolution (two groups) and
with responses normalised over neighbouring channels; one tower is that of 2014, without either,
whose weights torchvision gives away.  Shapes: B batch, C channels, H height, W width, K classes.
References: 2012, Krizhevsky, Sutskever, Hinton, ImageNet classification with deep convolutional
neural networks, NeurIPS; 2014, Krizhevsky, One weird trick for parallelizing convolutional neural
networks, arXiv 1404.5997.
"""

from collections import OrderedDict
from collections.abc import Sequence

from torch import nn

from castalia.errors import InvalidParameter
from castalia.nets.vision.image_network import ImageNetwork, check_size, initialise, scaled

__all__ = ["AlexNet"]

WIDTHS = {2: (96, 256, 384, 384, 256), 1: (64, 192, 384, 256, 256)}  # by towers
GRID = 6  # height and width of the last map of an image of 224 pixels


class AlexNet(ImageNetwork):
    """AlexNet, 60,965,224 weights with two towers and a thousand classes.

    Parameters
    ----------
    channels
        Channels of the images.
    classes
        Number of scores.
    towers
        2: the network of 2012, with groups and response normalisation. 1: the network of 2014,
        61,100,840 weights, torchvision's.
    width
        Factor on all channels and dense widths; below 1 for small problems.
    dropout
        Probability of zeroing an input of the two hidden dense layers in training.
    size
        Height and width of the images. The dense layers see a map of 6x6, to which larger maps are
        averaged; of smaller images it is as large as it is. None is 224 and more.
    initialisation
        Scheme of ``castalia.nn.init``.

    Examples
    --------
    >>> import torch
    >>> AlexNet(3, 5, width=0.125, size=(64, 64))(torch.zeros(2, 3, 64, 64)).shape
    torch.Size([2, 5])
    """

    def __init__(
        self,
        channels: int,
        classes: int,
        *,
        towers: int = 2,
        width: float = 1.0,
        dropout: float = 0.5,
        size: Sequence[int] | None = None,
        initialisation: str = "he",
    ) -> None:
        super().__init__()
        if towers not in WIDTHS:
            raise InvalidParameter(f"AlexNet: `towers` must be 1 or 2; got {towers!r}.")
        self.channels, self.least = channels, 63
        check_size("AlexNet", size, self.least)
        a, b, c, d, e = (scaled(w, width, towers) for w in WIDTHS[towers])
        dense = scaled(4096, width)
        self.features = nn.Sequential(
            OrderedDict(
                **_conv(1, nn.Conv2d(channels, a, 11, stride=4, padding=2), towers),
                pool1=nn.MaxPool2d(3, 2),
                **_conv(2, nn.Conv2d(a, b, 5, padding=2, groups=towers), towers),
                pool2=nn.MaxPool2d(3, 2),
                **_conv(3, nn.Conv2d(b, c, 3, padding=1)),
                **_conv(4, nn.Conv2d(c, d, 3, padding=1, groups=towers)),
                **_conv(5, nn.Conv2d(d, e, 3, padding=1, groups=towers)),
                pool5=nn.MaxPool2d(3, 2),
            )
        )
        height, across = (GRID, GRID) if size is None else (min(GRID, _shrunk(s)) for s in size)
        self.head = nn.Sequential(
            OrderedDict(
                pool=nn.AdaptiveAvgPool2d((height, across)),
                flatten=nn.Flatten(),
                dropout6=nn.Dropout(dropout),
                dense6=nn.Linear(e * height * across, dense),
                relu6=nn.ReLU(),
                dropout7=nn.Dropout(dropout),
                dense7=nn.Linear(dense, dense),
                relu7=nn.ReLU(),
                classes=nn.Linear(dense, classes),
            )
        )
        initialise(self, initialisation)


def _conv(number: int, conv: nn.Conv2d, towers: int = 1) -> dict[str, nn.Module]:
    """A convolution and its ReLU, and in two towers the normalisation behind it."""
    layers: dict[str, nn.Module] = {f"conv{number}": conv, f"relu{number}": nn.ReLU()}
    if towers == 2:
        layers[f"norm{number}"] = nn.LocalResponseNorm(5, alpha=5e-4, beta=0.75, k=2.0)
    return layers


def _shrunk(side: int) -> int:
    """Side of the last map: the first convolution, then three pools."""
    side = (side + 4 - 11) // 4 + 1
    for _ in range(3):
        side = (side - 3) // 2 + 1
    return side
