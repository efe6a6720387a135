"""Convolution and cross-correlation, which libraries call convolution, as one switch.

Convolution:       S(i) = sum_a K(a) I(i - a), the kernel runs backwards.
Cross-correlation: S(i) = sum_a K(a) I(i + a), what ``torch.nn.Conv2d`` computes.

Each is the other with the kernel flipped. Convolution commutes and is associative; in a network
whose kernels are learnt there is no difference.

Shapes: B batch, C channels, O outputs, n positions (one to three axes), f taps.
"""

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor

from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.utils.text import did_you_mean, listing

__all__ = ["BORDERS", "convolve", "pad"]

BORDERS = ("zeros", "replicate", "reflect", "circular")
PADDINGS = ("valid", "same", "full")


def convolve(
    x: Tensor,
    kernel: Tensor,
    *,
    flip: bool = True,
    stride: int = 1,
    padding: int | str = "valid",
    dilation: int = 1,
    border: str | float = "zeros",
) -> Tensor:
    """Convolve signals or images with kernels.

    Parameters
    ----------
    x
        (n,) or (n, n) and so on for one channel without a batch, or (B, C, n...).
    kernel
        As ``x`` is: (f...) or (O, C, f...).
    flip
        Whether the kernel is flipped: convolution. False is cross-correlation.
    stride
        Every how many positions a value is computed.
    padding
        ``"valid"``: only where the kernel fits, n - f + 1 positions. ``"same"``: as many positions
        as went in (before the stride). ``"full"``: wherever they overlap, n + f - 1. A number: so
        many positions on each side.
    dilation
        Positions from one tap to the next.
    border
        What the added positions hold: ``"zeros"``, a number, ``"replicate"`` (the outermost value),
        ``"reflect"`` (a mirror on it) or ``"circular"`` (the other end).

    Notes
    -----
    A kernel with an even number of taps has no middle. "Same" then pads one more after the signal
    for a correlation, as torch does, and one more before it for a convolution, as SciPy does.

    Examples
    --------
    >>> import torch
    >>> x, kernel = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([0.0, 1.0, 0.5])
    >>> convolve(x, kernel, padding="full")
    tensor([0.0000, 1.0000, 2.5000, 4.0000, 1.5000])
    >>> convolve(x, kernel, padding="full", flip=False)
    tensor([0.5000, 2.0000, 3.5000, 3.0000, 0.0000])
    """
    plain = x.ndim == kernel.ndim and x.ndim < 3
    if plain:
        x, kernel = x[None, None], kernel[None, None]
    axes = kernel.ndim - 2
    if x.ndim != kernel.ndim or not 1 <= axes <= 3:
        raise ShapeMismatch(
            "convolve: `x` and `kernel` must both be bare signals or be (B, C, n...) and "
            f"(O, C, f...); got {tuple(x.shape)} and {tuple(kernel.shape)}."
        )
    sides = [_sides(f, padding, dilation, flip) for f in kernel.shape[2:]]
    if flip:
        kernel = kernel.flip(tuple(range(2, kernel.ndim)))
    correlate = (F.conv1d, F.conv2d, F.conv3d)[axes - 1]
    out = correlate(pad(x, sides, border), kernel, stride=stride, dilation=dilation)
    return out[0, 0] if plain else out


def pad(x: Tensor, sides: Sequence[tuple[int, int]], border: str | float = "zeros") -> Tensor:
    """Add positions before and after the last axes.

    Parameters
    ----------
    x
        (B, C, n...).
    sides
        (before, after) for each of the last axes, the first of them first.
    border
        What the added positions hold, as in ``convolve``.

    Examples
    --------
    >>> import torch
    >>> pad(torch.tensor([[[1.0, 2.0, 3.0]]]), [(1, 2)], "replicate")
    tensor([[[1., 1., 2., 3., 3., 3.]]])
    """
    amounts = [amount for side in reversed(sides) for amount in side]  # torch begins with the last
    if not isinstance(border, str):
        return F.pad(x, amounts, value=float(border))
    if border not in BORDERS:
        raise InvalidParameter(
            f"pad: `border` must be a number, {listing(BORDERS)}; got {border!r}."
            f"{did_you_mean(border, BORDERS)}"
        )
    return F.pad(x, amounts, mode="constant" if border == "zeros" else border)


def _sides(kernel: int, padding: int | str, dilation: int, flip: bool) -> tuple[int, int]:
    """Return how many positions to add before and after an axis."""
    if isinstance(padding, int):
        return padding, padding
    if padding not in PADDINGS:
        raise InvalidParameter(
            f"convolve: `padding` must be a number, {listing(PADDINGS)}; got {padding!r}."
            f"{did_you_mean(padding, PADDINGS)}"
        )
    reach = dilation * (kernel - 1)
    if padding == "same":
        less, more = reach // 2, reach - reach // 2
        return (more, less) if flip else (less, more)
    return (reach, reach) if padding == "full" else (0, 0)
