"""ResNet: layers learn what to add to their input.

v1   x' = relu(s x + F(x)),  F = conv norm relu conv norm          (2015)
v2   x' = s x + F(relu(norm(x))),  F = conv norm relu conv         (2016, pre-activation)
multistep   s x becomes (1 - k) x_n + k x_{n-1}, with k learnt, a linear two-step method  (2018)
F is two 3x3 convolutions, or 1x1 - 3x3 - 1x1 (bottleneck) from 50 layers on. Where the shape
changes, the shortcut is a 1x1 convolution; in the networks for small images, strides and zeros.
Shapes: B batch, C channels, H height, W width, K classes.
References: 2015, He, Zhang, Ren, Sun, Deep residual learning for image recognition, arXiv
1512.03385; 2016, the same, Identity mappings in deep residual networks, arXiv 1603.05027; 2018, Lu,
Zhong, Li, Dong, Beyond finite layer neural networks, arXiv 1710.10121.
Departs from them: a bottleneck's stride is in its 3x3 convolution, as in everybody's weight files.
"""

from collections import OrderedDict
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.errors import InvalidParameter
from castalia.nets.vision.image_network import ImageNetwork, check_size, initialise
from castalia.nn.convolutions.block_convolution import BlockConv2d
from castalia.utils.text import listing

__all__ = ["ResNet"]

# Blocks of each stage, by depth: two layers a block to 34, then three.
IMAGENET = {
    18: (2, 2, 2, 2),
    34: (3, 4, 6, 3),
    50: (3, 4, 6, 3),
    101: (3, 4, 23, 3),
    152: (3, 8, 36, 3),
    200: (3, 24, 36, 3),
}
SMALL_IMAGES = 64  # up to this side, "auto" keeps the resolution of the image in the stem


class Pad(nn.Module):
    """Shortcut without weights: every other pixel, and zeros for the channels that are new."""

    def __init__(self, extra: int, stride: int) -> None:
        super().__init__()
        self.extra, self.stride = extra, stride

    def forward(self, x: Tensor) -> Tensor:  # (B, C, H, W)
        x = x[:, :, :: self.stride, :: self.stride]
        return F.pad(x, (0, 0, 0, 0, 0, self.extra))  # (B, C + extra, H / stride, W / stride)


class Block(nn.Module):
    """One residual block: ``layers`` are kernel, width and stride of its convolutions."""

    def __init__(
        self,
        inputs: int,
        layers: Sequence[tuple[int, int, int]],
        *,
        variant: str,
        scale: float | None,
        project: bool,
        multistep: bool,
    ) -> None:
        super().__init__()
        v1, outputs = variant == "v1", layers[-1][1]
        stride = max(s for _, _, s in layers)
        self.scale, self.v1 = scale, v1
        self.before = None if v1 else nn.Sequential(OrderedDict(norm=nn.BatchNorm2d(inputs)))
        self.residual = nn.Sequential(OrderedDict(_branch(inputs, layers, v1)))
        self.shortcut: nn.Module | None = None
        changes = stride > 1 or inputs != outputs
        if changes and scale is not None:
            self.shortcut = (
                _projection(inputs, outputs, stride, v1)
                if project
                else Pad(outputs - inputs, stride)
            )
        self.k = nn.Parameter(torch.zeros(1)) if multistep and scale is not None else None

    def forward(self, x: Tensor) -> Tensor:  # (B, C, H, W)
        """Return x', (B, C', H', W')."""
        return self.step(x)[0]

    def step(self, x: Tensor, previous: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return x' and what the shortcut made of x, the previous state of a two-step method."""
        h = x if self.before is None else torch.relu(self.before(x))
        out: Tensor = self.residual(h)
        skip = x if self.shortcut is None else self.shortcut(h)
        if self.scale is not None:
            past = skip
            if self.k is not None and previous is not None:
                past = skip + self.k * (previous - skip)
            out = out + (past if self.scale == 1 else self.scale * past)
        return (torch.relu(out) if self.v1 else out), skip


class Stage(nn.Sequential):
    """Blocks at one resolution; those of a two-step method are shown the last two states."""

    def forward(self, input: Tensor) -> Tensor:  # (B, C, H, W)
        """Return the state after the last block."""
        first, *others = (block for block in self if isinstance(block, Block))
        if all(block.k is None for block in others):
            return super().forward(input)
        x, previous = first.step(input)
        for block in others:
            x, previous = block.step(x, previous)
        return x


class ResNet(ImageNetwork):
    """Residual network, of the ImageNet kind or of the kind for small images.

    Depths 18, 34, 50, 101, 152 and 200 have four stages of widths 64 to 512 (times 4 from 50 on);
    other depths 6n + 2 (20, 32, 44, 56, 110 in the paper) three of widths 16, 32 and 64.

    Parameters
    ----------
    channels
        Channels of the images.
    classes
        Number of scores.
    depth
        Layers with weights.
    variant
        ``"v1"``, or ``"v2"`` with normalisation and ReLU before the convolutions.
    width
        Channels of the first stage; None is the paper's, 64 or 16.
    shortcut
        False leaves the shortcuts out: the plain network of the comparison.
    scale
        Factor s on the shortcut.
    multistep
        Learn a k in every block that keeps its shape; k starts at 0, where the network is the
        ordinary one.
    zero_init
        Start every block as its shortcut alone.
    stem
        ``"imagenet"`` (7x7 of stride 2, then a pool), ``"small"`` (3x3) or ``"auto"``: small for
        images up to 64 pixels and for the depths 6n + 2.
    size
        Height and width of the images, where known.
    initialisation
        Scheme of ``castalia.nn.init``.

    Examples
    --------
    >>> net = ResNet(3, 10, depth=20)
    >>> net(torch.zeros(2, 3, 32, 32)).shape, sum(p.numel() for p in net.parameters())
    (torch.Size([2, 10]), 269722)
    """

    def __init__(
        self,
        channels: int,
        classes: int,
        *,
        depth: int = 18,
        variant: str = "v1",
        width: int | None = None,
        shortcut: bool = True,
        scale: float = 1.0,
        multistep: bool = False,
        zero_init: bool = False,
        stem: str = "auto",
        size: Sequence[int] | None = None,
        initialisation: str = "he",
    ) -> None:
        super().__init__()
        _check(depth, variant, stem)
        large = depth in IMAGENET
        stages = IMAGENET[depth] if large else ((depth - 2) // 6,) * 3
        width = width or (64 if large else 16)
        if stem == "auto":
            known_small = size is not None and min(size) <= SMALL_IMAGES
            stem = "small" if known_small or not large else "imagenet"
        self.channels, self.least = channels, 1
        check_size("ResNet", size, self.least)
        self.features = nn.Sequential(OrderedDict(stem=_stem(channels, width, stem, variant)))
        inputs, expand = width, 4 if large and depth >= 50 else 1
        for i, blocks in enumerate(stages):
            stage = Stage()
            for j in range(blocks):
                block = Block(
                    inputs,
                    _layers(width * 2**i, 2 if i and not j else 1, expand),
                    variant=variant,
                    scale=scale if shortcut else None,
                    project=large,
                    multistep=multistep and j > 0,
                )
                stage.append(block)
                inputs = width * 2**i * expand
            self.features.add_module(f"stage{i + 1}", stage)
        if variant == "v2":
            self.features.add_module("norm", nn.BatchNorm2d(inputs))
            self.features.add_module("relu", nn.ReLU())
        self.head = nn.Sequential(
            OrderedDict(
                pool=nn.AdaptiveAvgPool2d(1),
                flatten=nn.Flatten(),
                classes=nn.Linear(inputs, classes),
            )
        )
        initialise(self, initialisation)
        if zero_init:
            _start_as_shortcuts(self)


def _stem(channels: int, width: int, kind: str, variant: str) -> nn.Sequential:
    """The first convolution, normalised in v1; the ImageNet kind shrinks the image by four."""
    large = kind == "imagenet"
    kernel, stride = (7, 2) if large else (3, 1)
    conv = BlockConv2d(channels, width, kernel, stride, padding=kernel // 2, bias=False)
    layers: dict[str, nn.Module] = {"conv": conv}
    if variant == "v1":
        layers |= {"norm": nn.BatchNorm2d(width), "relu": nn.ReLU()}
    if large:
        layers["pool"] = nn.MaxPool2d(3, 2, padding=1)
    return nn.Sequential(OrderedDict(layers))


def _layers(width: int, stride: int, expand: int) -> list[tuple[int, int, int]]:
    """Kernel, width and stride of a block's convolutions."""
    if expand > 1:
        return [(1, width, 1), (3, width, stride), (1, expand * width, 1)]
    return [(3, width, stride), (3, width, 1)]


def _branch(inputs: int, layers: Sequence[tuple[int, int, int]], v1: bool) -> dict[str, nn.Module]:
    """F: convolutions with norm and ReLU between them, and in v1 a norm at the end."""
    found: dict[str, nn.Module] = {}
    for i, (kernel, width, stride) in enumerate(layers, start=1):
        conv = nn.Conv2d(inputs, width, kernel, stride, padding=kernel // 2, bias=False)
        found[f"conv{i}"] = conv
        last = i == len(layers)
        if v1 or not last:
            found[f"norm{i}"] = nn.BatchNorm2d(width)
        if not last:
            found[f"relu{i}"] = nn.ReLU()
        inputs = width
    return found


def _projection(inputs: int, outputs: int, stride: int, v1: bool) -> nn.Sequential:
    conv = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
    norm = {"norm": nn.BatchNorm2d(outputs)} if v1 else {}
    return nn.Sequential(OrderedDict(conv=conv, **norm))


@torch.no_grad()
def _start_as_shortcuts(net: ResNet) -> None:
    """Set to zero what each F ends with: its norm's scale in v1, its last convolution in v2."""
    for block in net.modules():
        if isinstance(block, Block):
            last: nn.Module = block.residual[-1]
            last.weight.zero_()  # type: ignore[operator, union-attr]


def _check(depth: int, variant: str, stem: str) -> None:
    if depth not in IMAGENET and (depth < 8 or depth % 6 != 2):
        raise InvalidParameter(
            f"ResNet: `depth` must be {listing(IMAGENET)}, or 6n + 2 as 20, 32, 44, 56 and 110; "
            f"got {depth!r}."
        )
    if variant not in ("v1", "v2"):
        raise InvalidParameter(f"ResNet: `variant` must be 'v1' or 'v2'; got {variant!r}.")
    if stem not in ("auto", "imagenet", "small"):
        raise InvalidParameter(
            f"ResNet: `stem` must be 'auto', 'imagenet' or 'small'; got {stem!r}."
        )
