"""Encoders and decoders: dense ones, and convolutional ones whose strides halve and double images.

Shapes: B batch, D numbers of a row, C channels, H and W size, K code, P outputs for a row.
Reference: 2016, Radford, Metz, Chintala, Deep convolutional generative adversarial networks, arXiv
1511.06434. Departs from it: as many stages as bring the image to at most 7 pixels, group norm
where the paper has batch norm, so that no row depends on those beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from castalia.nets.dense import MLP
from castalia.nn import activation as make_activation

__all__ = ["ConvDecoder", "ConvEncoder", "decoder", "encoder", "stage_sizes"]

SMALLEST = 7  # pixels at which halving ends


def stage_sizes(size: Sequence[int]) -> list[tuple[int, int]]:
    """Return the sizes of an image that is halved until it is small.

    >>> stage_sizes((28, 28))
    [(28, 28), (14, 14), (7, 7)]
    """
    found = [(int(size[0]), int(size[1]))]
    while max(found[-1]) > SMALLEST:
        found.append((-(-found[-1][0] // 2), -(-found[-1][1] // 2)))
    return found


def _groups(channels: int) -> int:
    return next(n for n in (8, 4, 2, 1) if channels % n == 0)


class ConvEncoder(nn.Module):
    """Convolutions of stride 2, then a dense layer.

    Parameters
    ----------
    channels, size
        Of images.
    outputs
        Number of outputs.
    width
        Channels of the first stage; each further stage has twice as many.
    activation
        Name of the non-linearity.
    """

    def __init__(
        self,
        channels: int,
        size: Sequence[int],
        outputs: int,
        *,
        width: int = 32,
        activation: str = "relu",
    ) -> None:
        super().__init__()
        sizes, layers = stage_sizes(size), []
        widths = [channels, *(width * 2**i for i in range(len(sizes) - 1))]
        for before, after in zip(widths, widths[1:], strict=False):
            norm = nn.GroupNorm(_groups(after), after)
            layers += [nn.Conv2d(before, after, 3, 2, 1), norm, make_activation(activation)]
        self.stages = nn.Sequential(*layers)
        self.head = nn.Linear(widths[-1] * sizes[-1][0] * sizes[-1][1], outputs)

    def forward(self, x: Tensor) -> Tensor:  # (B, C, H, W)
        """Return the outputs, (B, outputs)."""
        return self.head(self.stages(x).flatten(1))


class ConvDecoder(nn.Module):
    """A dense layer, then transposed convolutions of stride 2: the encoder backwards.

    Parameters
    ----------
    inputs
        Width of the code.
    channels, size
        Of the images that come out.
    width, activation
        As in ``ConvEncoder``.
    """

    def __init__(
        self,
        inputs: int,
        channels: int,
        size: Sequence[int],
        *,
        width: int = 32,
        activation: str = "relu",
    ) -> None:
        super().__init__()
        self.sizes = stage_sizes(size)[::-1]
        n = len(self.sizes) - 1
        widths = [*(width * 2**i for i in reversed(range(n))), channels]
        self.start = nn.Linear(inputs, widths[0] * self.sizes[0][0] * self.sizes[0][1])
        self.stages = nn.ModuleList(
            nn.ConvTranspose2d(before, after, 3, 2, 1)
            for before, after in zip(widths, widths[1:], strict=False)
        )
        self.between = nn.ModuleList(
            nn.Sequential(nn.GroupNorm(_groups(each), each), make_activation(activation))
            for each in widths[:-1]
        )

    def forward(self, z: Tensor) -> Tensor:  # (B, K)
        """Return images as rows, (B, C H W)."""
        h = self.start(z).view(len(z), -1, *self.sizes[0])
        for size, between, stage in zip(self.sizes[1:], self.between, self.stages, strict=True):
            h = stage(between(h), output_size=size)
        return h.flatten(1)


def encoder(
    inputs: int,
    outputs: int,
    *,
    size: Sequence[int] = (),
    hidden: Sequence[int] = (128,),
    width: int = 0,
    activation: str = "relu",
    categories: Sequence[int] = (),
) -> nn.Module:
    """Return a network from rows to outputs.

    Parameters
    ----------
    inputs
        Width of a row, or channels of an image.
    outputs
        Number of outputs.
    size
        Height and width of images; empty for tables.
    hidden
        Widths of the hidden layers of a dense one.
    width
        Channels of the first stage of a convolutional one; 0: dense.
    activation
        Name of the non-linearity.
    categories
        Sizes of the categorical columns of a table.
    """
    if size and width:
        return ConvEncoder(inputs, size, outputs, width=width, activation=activation)
    numbers = inputs * size[0] * size[1] if size else inputs
    dense = MLP(numbers, outputs, hidden=hidden, activation=activation, categories=categories)
    return nn.Sequential(nn.Flatten(), dense) if size else dense


def decoder(
    inputs: int,
    outputs: int,
    *,
    size: Sequence[int] = (),
    hidden: Sequence[int] = (128,),
    width: int = 0,
    activation: str = "relu",
) -> nn.Module:
    """Return a network from codes to the outputs of a row; ``hidden`` in the encoder's order."""
    if size and width:
        channels = outputs // (size[0] * size[1])
        return ConvDecoder(inputs, channels, size, width=width, activation=activation)
    layers: Any = tuple(reversed(tuple(hidden)))
    return MLP(inputs, outputs, hidden=layers, activation=activation)
