"""What the image classifiers have in common: maps of features, then a head that ends in scores.

f(x) = head(features(x)).  Shapes: B batch, C channels, H height, W width, D code, K classes.
The children of ``features`` and ``head`` are the layers in order, by which transfer counts depth;
the last child of ``head`` is the linear layer of the classes.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from castalia.errors import ShapeMismatch
from castalia.nn import init

__all__ = ["ImageNetwork", "check_size", "initialise", "scaled"]


class ImageNetwork(nn.Module):
    """A network with ``features`` and ``head``.

    Attributes
    ----------
    channels
        Channels of the images.
    least
        Smallest height and width that leave a map to pool at the end.
    dims
        2 for images, 1 for signals (B, C, T).
    """

    dims = 2
    features: nn.Sequential
    head: nn.Sequential
    channels: int
    least: int

    def forward(self, x: Tensor) -> Tensor:  # (B, C, H, W)
        """Return the scores of the classes, (B, K)."""
        scores: Tensor = self.head(self.maps(x))
        return scores

    def encode(self, x: Tensor) -> Tensor:  # (B, C, H, W)
        """Return what the last layer sees, (B, D)."""
        code: Tensor = self.head[:-1](self.maps(x))
        return code

    def maps(self, x: Tensor) -> Tensor:  # (B, C, H, W)
        """Return the last feature maps, after a check of the images' shape."""
        axes = "H, W" if self.dims == 2 else "T"
        if x.ndim != self.dims + 2 or x.shape[1] != self.channels:
            raise ShapeMismatch(
                f"{type(self).__name__}: x must be (B, {self.channels}, {axes}); got "
                f"{tuple(x.shape)}. Channels come right after the batch."
            )
        check_size(type(self).__name__, x.shape[2:], self.least)
        maps: Tensor = self.features(x)
        return maps


def check_size(owner: str, size: Sequence[int] | None, least: int) -> None:
    """Refuse images or signals that shrink to nothing on their way; None: not yet known.

    >>> check_size("VGG", (224, 224), 32)
    """
    if size is None or min(size) >= least:
        return
    what = "images must be at least {} pixels high and wide"
    if len(size) == 1:
        what = "signals must be at least {} steps long"
    raise ShapeMismatch(
        f"{owner}: {what.format(least)}, for the network shrinks them; got "
        f"{' x '.join(map(str, size))}. Enlarge them, or use a shallower network."
    )


def initialise(net: ImageNetwork, scheme: str) -> None:
    """Set the weights by a scheme of ``castalia.nn.init``, drawn from torch's own generator.

    The last layer feeds no activation, so it always starts with gain 1.
    """
    init(net.features, scheme, random_state=torch.default_generator)
    init(net.head[:-1], scheme, random_state=torch.default_generator)
    init(net.head[-1], "glorot", random_state=torch.default_generator)


def scaled(width: int, factor: float, divisor: int = 1) -> int:
    """Return a number of channels times a factor, rounded to a multiple of ``divisor``.

    >>> scaled(96, 1.0), scaled(96, 0.1, 2), scaled(16, 0.01, 2)
    (96, 10, 2)
    """
    return max(divisor, round(width * factor / divisor) * divisor)
