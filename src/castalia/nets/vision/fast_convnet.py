"""Convolutional network that is trained in seconds: whitened patches, then few and wide layers.

f(x) = V pool(stages(gelu(W * x + b))) / D.  W whitens patches of the training images: its filters
are their principal directions over the square roots of their variances, and the same negated; only
b is learnt. A stage is a convolution, a pool, norm and GELU, and further convolutions with norms
and GELUs, around which a shortcut may lead. Filters start as the identity where they can, norms
have no scale.
Shapes: B batch, C channels, H height, W width, P side of a patch, D code,
K classes.
References: 2018, Page, How to train your ResNet (whitened patches); 2024, Jordan, 94% on CIFAR-10
in 3.29 seconds on a single GPU, arXiv 2404.00498 (identity, stages).
Departs from them: images of any size, whose last map is pooled to one place.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from castalia.errors import InvalidParameter
from castalia.nets.vision.image_network import ImageNetwork, check_size

__all__ = ["FastConvNet", "rate_factors"]

NOISE = 5e-4  # variance below which a direction of patches is taken for noise
BIASES, SCORES = 1.7, 22.0  # factors on the rate of the filters, by width
MOMENTUM = 0.4  # of the running statistics: a few hundred steps are all there is


class Stage(nn.Module):
    """Convolutions at one resolution, the first of them before the pool that halves the map."""

    def __init__(self, inputs: int, width: int, *, convs: int, shortcut: bool) -> None:
        super().__init__()
        self.first = nn.Sequential(
            OrderedDict(
                conv=_conv(inputs, width), pool=nn.MaxPool2d(2), norm=_norm(width), gelu=nn.GELU()
            )
        )
        layers: dict[str, nn.Module] = {}
        for i in range(1, convs):
            layers |= {f"conv{i}": _conv(width, width), f"norm{i}": _norm(width)}
            layers |= {f"gelu{i}": nn.GELU()} if i < convs - 1 else {}
        self.others = nn.Sequential(OrderedDict(layers))
        self.shortcut, self.gelu = shortcut, nn.GELU()

    def forward(self, x: Tensor) -> Tensor:  # (B, C, H, W)
        """Return the maps after the last convolution, (B, width, H / 2, W / 2)."""
        x = self.first(x)
        if not len(self.others):
            return x
        later = self.others(x)
        maps: Tensor = self.gelu(x + later if self.shortcut else later)
        return maps


class Shrink(nn.Module):
    """Divides by a number."""

    def __init__(self, by: float) -> None:
        super().__init__()
        self.by = by

    def forward(self, x: Tensor) -> Tensor:  # (B, D)
        """Return x / by."""
        return x / self.by


class FastConvNet(ImageNetwork):
    """Whitened patches, three wide stages, a linear layer; for images of about 32 pixels.

    Parameters
    ----------
    channels
        Channels of the images.
    classes
        Number of scores.
    widths
        Channels of each stage; every stage halves the map.
    convs
        Convolutions in each stage.
    shortcut
        Whether a shortcut leads around the later convolutions of each stage.
    patch
        Height and width of the whitened patches.
    covariance
        Of the patches of training images, (C P P, C P P); None: as if they were white.
    size
        Height and width of the images, where known.

    Examples
    --------
    >>> net = FastConvNet(3, 10)
    >>> net(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """

    def __init__(
        self,
        channels: int,
        classes: int,
        *,
        widths: Sequence[int] = (64, 256, 256),
        convs: int = 2,
        shortcut: bool = False,
        patch: int = 2,
        covariance: Any = None,
        size: Sequence[int] | None = None,
    ) -> None:
        super().__init__()
        if not widths:
            raise InvalidParameter(
                f"FastConvNet: `widths` must name one stage or more; got {widths!r}."
            )
        self.channels, self.least = channels, 2 ** len(widths) + patch - 1
        check_size("FastConvNet", size, self.least)
        values = channels * patch**2
        self.features = nn.Sequential(
            OrderedDict(whiten=nn.Conv2d(channels, 2 * values, patch), gelu=nn.GELU())
        )
        inputs = 2 * values
        for i, width in enumerate(widths):
            stage = Stage(inputs, width, convs=convs, shortcut=shortcut)
            self.features.add_module(f"stage{i + 1}", stage)
            inputs = width
        self.head = nn.Sequential(
            OrderedDict(
                pool=nn.AdaptiveMaxPool2d(1),
                flatten=nn.Flatten(),
                shrink=Shrink(inputs),
                classes=nn.Linear(inputs, classes, bias=False),
            )
        )
        self._initialise(torch.eye(values) if covariance is None else torch.tensor(covariance))

    @torch.no_grad()
    def _initialise(self, covariance: Tensor) -> None:
        whiten: Any = self.features.whiten
        scores: Any = self.head.classes
        filters = whitening_filters(covariance.double()).to(whiten.weight)
        whiten.weight.copy_(torch.cat([filters, -filters]).view_as(whiten.weight))
        _fix_weight(whiten)
        whiten.bias.zero_()
        for layer in self.features.modules():
            if isinstance(layer, nn.Conv2d) and layer is not whiten:
                nn.init.dirac_(layer.weight[: layer.in_channels])
        scores.weight.normal_()


def whitening_filters(covariance: Tensor) -> Tensor:  # (D, D)
    """Return the rows of a map after which patches have variance 1 in all directions, (D, D).

    Examples
    --------
    >>> patches = torch.randn(1000, 3) @ torch.diag(torch.tensor([1.0, 2.0, 5.0]))
    >>> white = patches @ whitening_filters(patches.T.cov()).T
    >>> bool((white.T.cov() - torch.eye(3)).abs().max() < 0.01)
    True
    """
    variances, directions = torch.linalg.eigh(covariance)
    return (directions / (variances.clamp_min(0) + NOISE).sqrt()).mT


def rate_factors(net: nn.Module) -> list[tuple[Tensor, float]]:
    """Return every trained parameter with the factor on its rate: filters learn at 1.

    Scores are divided by their width D and gradients shrink with them, so scores and biases learn
    at multiples of D.
    """
    scores: Any = net.head.classes  # type: ignore[union-attr]
    width = scores.in_features

    def factor(p: Tensor) -> float:
        return width * SCORES if p is scores.weight else width * BIASES if p.ndim == 1 else 1.0

    return [(p, factor(p)) for p in net.parameters() if p.requires_grad]


def _conv(inputs: int, outputs: int) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)


def _norm(width: int) -> nn.BatchNorm2d:
    norm = nn.BatchNorm2d(width, momentum=MOMENTUM)
    _fix_weight(norm)
    return norm


def _fix_weight(layer: nn.Module) -> None:
    """Keep a layer's weight as it is: a buffer instead of a parameter."""
    weight: Any = layer.weight
    del layer.weight
    layer.register_buffer("weight", weight.detach())
