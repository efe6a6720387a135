"""GoogLeNet: nine inception modules, each four branches side by side.

y = [1x1 | 1x1 -> 3x3 | 1x1 -> 5x5 | pool -> 1x1]; the 1x1 convolutions reduce the channels first.
Shapes: B batch, C channels, H height, W width, K classes.
References: 2014, Szegedy et al., Going deeper with convolutions, arXiv 1409.4842; 2015, Ioffe,
Szegedy, Batch normalization, arXiv 1502.03167.
Departs from it: no auxiliary classifiers. ``batch_norm=True`` is the network whose weights
torchvision gives away: normalised, 3x3 instead of 5x5 in the third branch, the last pool 2x2.
"""

from collections import OrderedDict
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from castalia.nets.vision.image_network import ImageNetwork, check_size, initialise, scaled

__all__ = ["GoogLeNet"]

# Channels of an inception module: 1x1, reduction and 3x3, reduction and 5x5, after the pool.
MODULES = {
    "inception3a": (64, 96, 128, 16, 32, 32),
    "inception3b": (128, 128, 192, 32, 96, 64),
    "pool3": (),
    "inception4a": (192, 96, 208, 16, 48, 64),
    "inception4b": (160, 112, 224, 24, 64, 64),
    "inception4c": (128, 128, 256, 24, 64, 64),
    "inception4d": (112, 144, 288, 32, 64, 64),
    "inception4e": (256, 160, 320, 32, 128, 128),
    "pool4": (),
    "inception5a": (256, 160, 320, 32, 128, 128),
    "inception5b": (384, 192, 384, 48, 128, 128),
}


class Conv(nn.Sequential):
    """A convolution with ReLU, normalised between or not; the map keeps its size at stride 1."""

    def __init__(
        self, inputs: int, outputs: int, kernel: int, *, norm: bool, stride: int = 1
    ) -> None:
        conv = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=not norm)
        layers: dict[str, nn.Module] = {"conv": conv}
        if norm:
            layers["norm"] = nn.BatchNorm2d(outputs, eps=1e-3)
        super().__init__(OrderedDict(layers, relu=nn.ReLU()))


class Inception(nn.Module):
    """Four branches on the same map, their channels side by side."""

    def __init__(self, inputs: int, widths: Sequence[int], *, norm: bool) -> None:
        super().__init__()
        one, reduce3, three, reduce5, five, pooled = widths
        self.outputs = one + three + five + pooled
        self.branch1 = Conv(inputs, one, 1, norm=norm)
        self.branch2 = nn.Sequential(
            Conv(inputs, reduce3, 1, norm=norm), Conv(reduce3, three, 3, norm=norm)
        )
        self.branch3 = nn.Sequential(
            Conv(inputs, reduce5, 1, norm=norm), Conv(reduce5, five, 3 if norm else 5, norm=norm)
        )
        self.branch4 = nn.Sequential(
            nn.MaxPool2d(3, 1, padding=1, ceil_mode=True), Conv(inputs, pooled, 1, norm=norm)
        )

    def forward(self, x: Tensor) -> Tensor:  # (B, C, H, W)
        branches = (self.branch1, self.branch2, self.branch3, self.branch4)
        return torch.cat([branch(x) for branch in branches], dim=1)  # (B, outputs, H, W)


class GoogLeNet(ImageNetwork):
    """GoogLeNet, 22 layers deep: 6,998,552 weights for a thousand classes.

    Parameters
    ----------
    channels
        Channels of the images.
    classes
        Number of scores.
    batch_norm
        False: the paper's network, with response normalisation near the input. True: torchvision's,
        6,624,904 weights.
    width
        Factor on all channels; below 1 for small problems.
    dropout
        Probability of zeroing an input of the last layer in training; the paper's is 0.4.
    size
        Height and width of the images, where known.
    initialisation
        Scheme of ``castalia.nn.init``.

    Examples
    --------
    >>> import torch
    >>> GoogLeNet(3, 5, width=0.125)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 5])
    """

    def __init__(
        self,
        channels: int,
        classes: int,
        *,
        batch_norm: bool = False,
        width: float = 1.0,
        dropout: float = 0.4,
        size: Sequence[int] | None = None,
        initialisation: str = "he",
    ) -> None:
        super().__init__()
        self.channels, self.least = channels, 15 if batch_norm else 31
        check_size("GoogLeNet", size, self.least)
        self.features, inputs = _stem(channels, width, batch_norm)
        for name, widths in MODULES.items():
            if not widths:
                small = batch_norm and name == "pool4"
                self.features.add_module(name, nn.MaxPool2d(2 if small else 3, 2, ceil_mode=True))
                continue
            module = Inception(inputs, [scaled(w, width) for w in widths], norm=batch_norm)
            self.features.add_module(name, module)
            inputs = module.outputs
        self.head = nn.Sequential(
            OrderedDict(
                pool=nn.AdaptiveAvgPool2d(1),
                flatten=nn.Flatten(),
                dropout=nn.Dropout(dropout),
                classes=nn.Linear(inputs, classes),
            )
        )
        initialise(self, initialisation)


def _stem(channels: int, width: float, norm: bool) -> tuple[nn.Sequential, int]:
    """The layers before the first module, and their channels; they shrink the image by eight."""
    a, b = scaled(64, width), scaled(192, width)
    response = nn.Identity if norm else lambda: nn.LocalResponseNorm(5)
    layers: OrderedDict[str, nn.Module] = OrderedDict(
        conv1=Conv(channels, a, 7, stride=2, norm=norm),
        pool1=nn.MaxPool2d(3, 2, ceil_mode=True),
        response1=response(),
        conv2=Conv(a, a, 1, norm=norm),
        conv3=Conv(a, b, 3, norm=norm),
        response2=response(),
        pool2=nn.MaxPool2d(3, 2, ceil_mode=True),
    )
    return nn.Sequential(layers), b
