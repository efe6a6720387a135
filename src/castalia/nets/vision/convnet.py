"""Small convolutional network: stages of convolutions, each followed by pooling.

A stage is (convolution, batch norm, ReLU) a few times, then a pool that halves the map, or a stride
of two in its last convolution. The last map is averaged over its places (global pooling) and read
by a linear layer, or flattened and read by dense layers.  Shapes: B batch, C channels, H height,
W width, T time, K classes.
References: 1998, LeCun, Bottou, Bengio, Haffner, Gradient-based learning applied to document
recognition, Proc. IEEE 86; 2015, Ioffe, Szegedy, Batch normalization, arXiv 1502.03167; 2013, Lin,
Chen, Yan, Network in network, arXiv 1312.4400 (global pooling).
"""

from collections.abc import Sequence
from typing import Any

from torch import nn

from castalia.errors import InvalidParameter
from castalia.nets.vision.image_network import ImageNetwork, check_size, initialise

__all__ = ["ConvNet", "ConvNet1d"]


class Stage(nn.Sequential):
    """Some convolutions of one width, over images (2) or signals (1); the last has the stride."""

    def __init__(
        self,
        inputs: int,
        width: int,
        *,
        convs: int,
        kernel: int,
        batch_norm: bool | str,
        dims: int,
        stride: int,
    ) -> None:
        conv, norm = (nn.Conv2d, nn.BatchNorm2d) if dims == 2 else (nn.Conv1d, nn.BatchNorm1d)
        layers: list[nn.Module] = []
        for i in range(convs):
            before, step = inputs if i == 0 else width, stride if i == convs - 1 else 1
            bias = not batch_norm
            layers.append(conv(before, width, kernel, step, padding=kernel // 2, bias=bias))
            if batch_norm:
                layers.append(norm(width, track_running_stats=batch_norm != "own"))
            layers.append(nn.ReLU())
        super().__init__(*layers)


class Stages(ImageNetwork):
    """What both kinds share; ``dims`` is 2 for images and 1 for signals."""

    def __init__(
        self,
        channels: int,
        classes: int,
        *,
        widths: Sequence[int] = (32, 64, 128),
        convs: int = 2,
        kernel: int = 3,
        pooling: str = "max",
        batch_norm: bool | str = True,
        hidden: Sequence[int] = (),
        dropout: float = 0.0,
        size: Sequence[int] | None = None,
        initialisation: str = "he",
    ) -> None:
        super().__init__()
        owner, pools = type(self).__name__, len(widths) - (not hidden)
        self.channels, self.least = channels, 2**pools
        _check(owner, widths, kernel, pooling, hidden, size)
        check_size(owner, size, self.least)
        pool: type[nn.Module] = nn.MaxPool2d if self.dims == 2 else nn.MaxPool1d
        self.features = nn.Sequential()
        own: dict[str, Any] = {"kernel": kernel, "batch_norm": batch_norm, "dims": self.dims}
        for i, (before, width) in enumerate(zip((channels, *widths), widths, strict=False)):
            stride = 2 if pooling == "stride" and i < pools else 1
            stage = Stage(before, width, convs=convs, stride=stride, **own)
            self.features.add_module(f"stage{i + 1}", stage)
            if i < pools and pooling == "max":
                self.features.add_module(f"pool{i + 1}", pool(2))
        cells = 1
        for length in size if hidden and size is not None else ():
            over = 2**pools - 1 if pooling == "stride" else 0  # a stride keeps an odd last place
            cells *= (length + over) // 2**pools
        self.head = _head(self.dims, widths[-1] * cells, hidden, classes, dropout)
        initialise(self, initialisation)


class ConvNet(Stages):
    """Stages of convolution, batch norm, ReLU and pooling; good for images of 8 to 64 pixels.

    Parameters
    ----------
    channels
        Channels of the images.
    classes
        Number of scores.
    widths
        Channels of each stage; every stage halves the map. Widths (32, 48, 56) make a network of
        97,594 weights for grey images and ten classes.
    convs
        Convolutions in each stage.
    kernel
        Their height and width, odd.
    pooling
        What halves a map: ``"max"`` of 2 x 2, or the ``"stride"`` of a stage's last convolution.
    batch_norm
        Normalise after each convolution; ``"own"`` by the rows at hand in predictions too.
    hidden
        Widths of dense layers between the maps and the scores, which then see every place of the
        last map and need ``size``; empty: the last map is averaged over its places.
    dropout
        Probability of zeroing an input of each dense layer in training.
    size
        Height and width of the images, where known.
    initialisation
        Scheme of ``castalia.nn.init``.

    Examples
    --------
    >>> import torch
    >>> ConvNet(1, 10)(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 10])
    """

    dims = 2


class ConvNet1d(Stages):
    """The same stages over signals, x (B, C, T).

    Parameters
    ----------
    channels
        Channels of the signals.
    classes
        Number of scores.
    widths
        Channels of each stage; every stage halves the time axis.
    convs
        Convolutions in each stage.
    kernel
        Their length, odd.
    pooling
        What halves the time axis: ``"max"`` of two, or the ``"stride"`` of a last convolution.
    batch_norm
        Normalise after each convolution.
    hidden
        Widths of dense layers before the scores; empty: an average over time.
    dropout
        Probability of zeroing an input of each dense layer in training.
    size
        Length of the signals, as a tuple (T,), where known.
    initialisation
        Scheme of ``castalia.nn.init``.

    Examples
    --------
    >>> import torch
    >>> ConvNet1d(3, 2)(torch.zeros(4, 3, 50)).shape
    torch.Size([4, 2])
    """

    dims = 1


def _head(
    dims: int, inputs: int, hidden: Sequence[int], classes: int, dropout: float
) -> nn.Sequential:
    """Average the map and score it, or flatten it and go through dense layers."""
    head = nn.Sequential()
    if not hidden:
        head.add_module("pool", nn.AdaptiveAvgPool2d(1) if dims == 2 else nn.AdaptiveAvgPool1d(1))
    head.add_module("flatten", nn.Flatten())
    for i, width in enumerate(hidden):
        if dropout:
            head.add_module(f"dropout{i + 1}", nn.Dropout(dropout))
        head.add_module(f"dense{i + 1}", nn.Linear(inputs, width))
        head.add_module(f"relu{i + 1}", nn.ReLU())
        inputs = width
    if dropout:
        head.add_module("dropout", nn.Dropout(dropout))
    head.add_module("classes", nn.Linear(inputs, classes))
    return head


def _check(
    owner: str,
    widths: Sequence[int],
    kernel: int,
    pooling: str,
    hidden: Sequence[int],
    size: Sequence[int] | None,
) -> None:
    if not widths:
        raise InvalidParameter(f"{owner}: `widths` must name one stage or more; got {widths!r}.")
    if kernel % 2 == 0:
        raise InvalidParameter(
            f"{owner}: `kernel` must be odd, so that maps keep their size; got {kernel}."
        )
    if pooling not in ("max", "stride"):
        raise InvalidParameter(f"{owner}: `pooling` must be 'max' or 'stride'; got {pooling!r}.")
    if hidden and size is None:
        raise InvalidParameter(
            f"{owner}: `size` must be given with `hidden`, for dense layers see every place of the "
            f"last map; got hidden={tuple(hidden)!r} and no size. Name it, or leave `hidden` empty."
        )
