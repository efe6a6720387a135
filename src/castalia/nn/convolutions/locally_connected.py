"""Locally connected layers: convolutions whose weights differ at every position.

z_o(i) = b_o(i) + sum_{c,a} W_o,c(i, a) x_c(s i + a).  The right choice where a feature belongs to a
place, such as the eyes of a face in a registered photograph; otherwise a convolution has as many
times fewer weights as there are positions.

Shapes: B batch, C inputs, O outputs, L output positions, P = C f taps of an output.
Reference: 1989, LeCun, Generalization and network design strategies, Connectionism in Perspective.
"""

from collections.abc import Sequence
from math import prod, sqrt

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.nn.convolutions.convolution_sizes import output_size

__all__ = ["LocallyConnected1d", "LocallyConnected2d"]


class _LocallyConnected(nn.Module):
    """Both layers: a signal is an image of one row."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        size: tuple[int, ...],
        kernel: tuple[int, ...],
        stride: tuple[int, ...],
        padding: tuple[int, ...],
        bias: bool,
    ) -> None:
        super().__init__()
        self.inputs, self.outputs, self.size = inputs, outputs, size
        self.kernel, self.stride, self.padding = kernel, stride, padding
        axes = zip(size, kernel, stride, padding, strict=True)
        self.positions = tuple(output_size(n, f, s, p) for n, f, s, p in axes)
        places, taps = prod(self.positions), inputs * prod(kernel)
        self.weight = nn.Parameter(torch.empty(places, outputs, taps))  # (L, O, P)
        self.bias = nn.Parameter(torch.empty(outputs, places)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weights and biases uniform in plus or minus 1 / sqrt(P), as torch's layers do."""
        bound = 1 / sqrt(self.weight.shape[2])
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)

    @torch.no_grad()
    def tie(self, conv: nn.Conv1d | nn.Conv2d) -> None:
        """Take the weights of a convolution of the same shape, at every position."""
        weight, bias = conv.weight, conv.bias
        flat = weight.flatten(1)
        if flat.shape != self.weight.shape[1:] or (bias is None) != (self.bias is None):
            raise ShapeMismatch(
                f"{type(self).__name__}.tie: `conv` must have {self.outputs} filters of "
                f"{self.weight.shape[2]} taps and {'no ' if self.bias is None else 'a '}bias; got "
                f"{conv!r}."
            )
        self.weight.copy_(flat.expand_as(self.weight))
        if self.bias is not None and bias is not None:
            self.bias.copy_(bias[:, None].expand_as(self.bias))

    def forward(self, x: Tensor) -> Tensor:  # (B, C, n...)
        """Return (B, O, m...)."""
        if x.shape[1:] != (self.inputs, *self.size):
            raise ShapeMismatch(
                f"{type(self).__name__}: the input must be (B, {self.inputs}, "
                f"{', '.join(map(str, self.size))}), since every position has its own weights; got "
                f"{tuple(x.shape)}."
            )
        wide = x.unsqueeze(2) if len(self.size) == 1 else x
        kernel, padding, stride = (
            (fill, *value) if len(value) == 1 else value
            for fill, value in ((1, self.kernel), (0, self.padding), (1, self.stride))
        )
        seen = F.unfold(wide, kernel, padding=padding, stride=stride)  # (B, P, L)
        out = torch.einsum("bpl,lop->bol", seen, self.weight)
        if self.bias is not None:
            out = out + self.bias
        return out.unflatten(2, self.positions)

    def extra_repr(self) -> str:
        """Say the sizes."""
        return (
            f"{self.inputs}, {self.outputs}, size={self.size}, kernel={self.kernel}, "
            f"stride={self.stride}, padding={self.padding}, bias={self.bias is not None}"
        )


class LocallyConnected1d(_LocallyConnected):
    """Unshared convolution of signals.

    Parameters
    ----------
    inputs, outputs
        Channels that go in and come out.
    size
        Positions that go in; fixed, since each has its own weights.
    kernel, stride, padding
        As in ``torch.nn.Conv1d``.
    bias
        Whether to add a bias, one for every output and position.

    Attributes
    ----------
    weight : Tensor (L, O, P)
        A filter for every position.
    positions
        Positions that come out, a tuple.

    Examples
    --------
    >>> layer = LocallyConnected1d(2, 3, size=10, kernel=4)
    >>> layer(torch.zeros(5, 2, 10)).shape, layer.weight.numel() == 7 * 3 * 2 * 4
    (torch.Size([5, 3, 7]), True)
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        size: int,
        kernel: int,
        *,
        stride: int = 1,
        padding: int = 0,
        bias: bool = True,
    ) -> None:
        super().__init__(inputs, outputs, (size,), (kernel,), (stride,), (padding,), bias)


class LocallyConnected2d(_LocallyConnected):
    """Unshared convolution of images.

    Parameters
    ----------
    inputs, outputs
        Channels that go in and come out.
    size
        (height, width) that go in, or one number for both; fixed, since each position has its own
        weights.
    kernel, stride, padding
        As in ``torch.nn.Conv2d``: a number, or one for each axis.
    bias
        Whether to add a bias, one for every output and position.

    Attributes
    ----------
    weight : Tensor (L, O, P)
        A filter for every position.
    positions
        (height, width) that come out.

    Examples
    --------
    >>> layer = LocallyConnected2d(1, 4, size=(8, 6), kernel=3, stride=(1, 3))
    >>> layer(torch.zeros(5, 1, 8, 6)).shape
    torch.Size([5, 4, 6, 2])
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        size: int | Sequence[int],
        kernel: int | Sequence[int],
        *,
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        bias: bool = True,
    ) -> None:
        super().__init__(
            inputs, outputs, _pair(size), _pair(kernel), _pair(stride), _pair(padding), bias
        )


def _pair(value: int | Sequence[int]) -> tuple[int, ...]:
    """Return a number for each of the two axes."""
    pair = (value, value) if isinstance(value, int) else tuple(value)
    if len(pair) != 2:
        raise InvalidParameter(
            f"LocallyConnected2d: a size must be one number or two; got {value!r}."
        )
    return pair
