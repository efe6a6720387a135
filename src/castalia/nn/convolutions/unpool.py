"""Max pooling that remembers where its maxima were, and the unpooling that puts them back.

Shapes: B batch, C channels, H height, W width, h and w after pooling.
Reference: 2017, Badrinarayanan, Kendall, Cipolla, SegNet, TPAMI 39, arXiv 1511.00561.
"""

from typing import NamedTuple

import torch.nn.functional as F
from torch import Tensor, nn

from castalia.errors import InvalidParameter, ShapeMismatch

__all__ = ["Positions", "Unpool2d"]


class Positions(NamedTuple):
    """Where the maxima of a pooling were.

    Attributes
    ----------
    places : Tensor (B, C, h, w)
        Place of each maximum in its flattened image.
    size
        (H, W) before pooling.
    """

    places: Tensor
    size: tuple[int, int]


class Unpool2d(nn.Module):
    """Pooling and unpooling of images as a pair.

    ``pool`` gives the maxima and where they were; calling the module puts values back there, among
    zeros. The size before pooling is remembered too, so one that the stride does not divide comes
    back as it was.

    Parameters
    ----------
    kernel
        Side of a window.
    stride
        Positions from one window to the next; ``kernel`` by default.
    padding
        Positions added on each side, which never win.

    Notes
    -----
    pool(unpool(y)) = y for values that are not negative, as after a ReLU: a zero beside a negative
    value would win. Where windows overlap, one place can be the maximum of several; it is then
    given the largest of their values.

    Examples
    --------
    >>> import torch
    >>> pair = Unpool2d(2)
    >>> x = torch.tensor([[[[1.0, 5.0, 2.0], [3.0, 4.0, 7.0]]]])
    >>> y, positions = pair.pool(x)
    >>> y, pair(10 * y, positions)
    (tensor([[[[5.]]]]), tensor([[[[ 0., 50.,  0.],
              [ 0.,  0.,  0.]]]]))
    """

    def __init__(self, kernel: int = 2, stride: int | None = None, padding: int = 0) -> None:
        super().__init__()
        if kernel < 1 or (stride is not None and stride < 1):
            raise InvalidParameter(
                f"Unpool2d: `kernel` and `stride` must be at least 1; got {kernel} and {stride}."
            )
        self.kernel, self.padding = kernel, padding
        self.stride = kernel if stride is None else stride

    def pool(self, x: Tensor) -> tuple[Tensor, Positions]:  # (B, C, H, W)
        """Return the maxima (B, C, h, w) and where they were."""
        y, places = F.max_pool2d(x, self.kernel, self.stride, self.padding, return_indices=True)
        return y, Positions(places, (x.shape[2], x.shape[3]))

    def forward(self, y: Tensor, positions: Positions) -> Tensor:  # (B, C, h, w)
        """Return (B, C, H, W): the values at their positions, zeros elsewhere."""
        places, size = positions
        if y.shape != places.shape:
            raise ShapeMismatch(
                f"Unpool2d: the values must have the shape of their positions, "
                f"{tuple(places.shape)}; got {tuple(y.shape)}."
            )
        flat = y.new_zeros(*y.shape[:2], size[0] * size[1])
        values, at = y.flatten(2), places.flatten(2)
        if self.stride < self.kernel:
            flat = flat.scatter_reduce(2, at, values, "amax", include_self=False)
        else:
            flat = flat.scatter(2, at, values)
        return flat.unflatten(2, size)

    def extra_repr(self) -> str:
        """Say the sizes."""
        return f"kernel={self.kernel}, stride={self.stride}, padding={self.padding}"
